"""Retrievers for the tasks of MTEB: by the names of methods, without the library."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, unit_rows
from diptych.errors import InvalidInputError, import_package
from diptych.retriever.retriever import Retriever


class MTEBModel:
    """A retriever under the methods that the image tasks of MTEB (MIEB) call in version 2 of the library.

    Xiao et al., "MIEB: Massive image embedding benchmark", ICCV 2025. ``mteb.evaluate(MTEBModel(retriever), tasks)``
    runs them. Embeddings are the points of the retriever, and ``similarity`` compares them as its space does.

    >>> from diptych import Retriever
    >>> from diptych.retriever import MTEBModel
    >>> model = MTEBModel(Retriever.default())
    >>> texts = model.encode([{"text": ["a red car", "a tree"]}, {"text": ["a house"]}])
    >>> texts.shape[0], tuple(model.similarity(texts, texts[:2]).shape)
    (3, (3, 2))
    """

    def __init__(self, retriever: Retriever) -> None:
        self.retriever = retriever

    @property
    def mteb_model_meta(self) -> Any:
        """What the model takes, and the names under which the library files its results."""
        described = import_package("mteb.models.model_meta", "describing a model to MTEB", "mteb").ModelMeta
        names = {"name": f"diptych/{self.retriever.name}", "revision": self.retriever.fingerprint}
        return described.create_empty(names | {"modalities": ["image", "text"]})

    def encode(self, inputs: Iterable[Any], *, prompt_type: Any = None, **_options: Any) -> AnyArray:
        """Return the points of batches with ``text``, ``image`` or both, whose points are summed as unit vectors."""
        is_query = getattr(prompt_type, "value", prompt_type) == "query"
        points = [self._points(batch, is_query) for batch in inputs]
        if not points:
            raise InvalidInputError("there is nothing to encode; pass batches with 'text' or 'image'")
        return np.concatenate(points)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the scores of all pairs; a tensor where PyTorch is in use, as the tasks expect it."""
        scores = self.retriever.space.compare(_array(embeddings1), _array(embeddings2), "text_query")
        torch = sys.modules.get("torch")
        return scores if torch is None else torch.from_numpy(np.ascontiguousarray(scores))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the score of each row with the row beside it."""
        rows = zip(_array(embeddings1), _array(embeddings2), strict=True)
        return np.array([self.retriever.space.compare(a[None], b[None], "text_query")[0, 0] for a, b in rows])

    def _points(self, batch: Any, is_query: bool) -> AnyArray:
        points = []
        if "text" in batch:
            texts, retriever = list(batch["text"]), self.retriever
            features = retriever.query_features(texts) if is_query else retriever.text_features(texts)
            points.append(retriever.texts_to_points(features))
        if "image" in batch:
            points.append(self.retriever.encode_images([_picture(image) for image in batch["image"]]))
        if len(points) == 1:
            return points[0]
        if (space := self.retriever.space.name) != "cosine":
            advice = "use a retriever that compares by cosine, such as Retriever.joint(folder)"
            raise InvalidInputError(f"a picture and a text have no common point in the space {space!r}; {advice}")
        return np.asarray(unit_rows(points[0]) + unit_rows(points[1]))


def _array(values: Any) -> AnyArray:
    """Return an array, or a tensor of whatever device, as an array."""
    return np.asarray(values.detach().cpu().float().numpy() if hasattr(values, "detach") else values)


def _picture(image: Any) -> Any:
    """Return a picture; a tensor (channels, height, width), of bytes or of numbers from 0 to 1, as pixels."""
    if not hasattr(image, "detach"):
        return image
    values = np.ascontiguousarray(image.detach().cpu().numpy().transpose(1, 2, 0))
    return values if values.dtype == np.uint8 else np.clip(values * 255, 0, 255).round().astype(np.uint8)
