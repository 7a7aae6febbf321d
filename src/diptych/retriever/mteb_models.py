"""Retrievers for the tasks of MTEB, and its models as retrievers: by the names of methods, without the library."""

from __future__ import annotations

import hashlib
import inspect
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np

from diptych.arrays import AnyArray, FloatArray, unit_rows
from diptych.encoders import Encoder, ImageEncoder
from diptych.encoders.encoder import check_texts
from diptych.encoders.image.picture_decoding import Picture
from diptych.errors import InvalidInputError, MissingPackageError
from diptych.models import SharedSpace
from diptych.retriever.calibration import Calibration
from diptych.retriever.retriever import Retriever

_BATCH = 32


class MTEBModel:
    """A retriever under the methods that the image tasks of MTEB (MIEB) call.

    Xiao et al., "MIEB: Massive image embedding benchmark", ICCV 2025. ``mteb.evaluate(MTEBModel(retriever), tasks)``
    runs them. ``encode`` takes batches, objects with ``text`` or ``image``, as version 2 of the library gives them;
    ``get_text_embeddings`` and ``get_image_embeddings`` take these or plain lists, as version 1. Embeddings are the
    points of the retriever, where texts are queries as its searches read them, and ``similarity`` compares them as
    its space does, which a task has to ask for: cosines of the points of a corrected space are not its scores.

    Parameters
    ----------
    retriever : Retriever
        A fitted retriever.

    Examples
    --------
    >>> from diptych import Retriever
    >>> from diptych.retriever import MTEBModel
    >>> model = MTEBModel(Retriever.default())
    >>> texts = model.encode([{"text": ["a red car", "a tree"]}, {"text": ["a house"]}], task_metadata=None)
    >>> texts.shape[0], tuple(model.similarity(texts, texts[:2]).shape)
    (3, (3, 2))
    """

    def __init__(self, retriever: Retriever) -> None:
        self.retriever = retriever

    @property
    def mteb_model_meta(self) -> Any:
        """What the library wants to know of a model: what it takes, and the names that its results are filed under."""
        try:
            described: Any = import_module("mteb.models.model_meta").ModelMeta
        except ImportError as error:
            raise MissingPackageError("describing a model to MTEB", "mteb") from error
        names = {"name": f"diptych/{self.retriever.name}", "revision": self.retriever.fingerprint}
        return described.create_empty({**names, "modalities": ["image", "text"]})

    def encode(
        self,
        inputs: Iterable[Any],
        *,
        task_metadata: Any = None,
        hf_split: str | None = None,
        hf_subset: str | None = None,
        prompt_type: Any = None,
        **options: Any,
    ) -> AnyArray:
        """Return the points of batches of texts, of pictures, or of both together."""
        del task_metadata, hf_split, hf_subset, options
        found = [self._points(batch, prompt_type) for batch in inputs]
        if not found:
            raise InvalidInputError("there is nothing to encode; pass batches with 'text' or 'image'")
        return np.concatenate(found)

    def get_text_embeddings(self, texts: Iterable[Any], *, prompt_type: Any = None, **options: Any) -> AnyArray:
        """Return the points of texts: strings, or batches of them."""
        del options
        read = list(_parts(texts, "text"))
        if getattr(prompt_type, "value", prompt_type) == "query":
            return self.retriever.texts_to_points(self.retriever.query_features(read))
        return self.retriever.encode_texts(read)

    def get_image_embeddings(self, images: Iterable[Any], **options: Any) -> AnyArray:
        """Return the points of pictures: Pillow images, tensors or paths, or batches of them."""
        del options
        return self.retriever.encode_images([_picture(image) for image in _parts(images, "image")])

    def get_fused_embeddings(
        self, texts: Iterable[Any] | None = None, images: Iterable[Any] | None = None, **options: Any
    ) -> AnyArray:
        """Return the points of texts, of pictures, or their sums, each of unit length; only cosines have such sums."""
        points = [self.get_text_embeddings(texts, **options)] if texts is not None else []
        points += [self.get_image_embeddings(images, **options)] if images is not None else []
        if len(points) == 1:
            return points[0]
        if not points:
            raise InvalidInputError("there is nothing to encode; pass texts, images or both")
        if self.retriever.space.name != "cosine":
            raise InvalidInputError(
                f"a picture and a text have no common point in the space {self.retriever.space.name!r}; "
                "use a retriever that compares by cosine, such as Retriever.joint(folder)"
            )
        return np.asarray(unit_rows(points[0]) + unit_rows(points[1]))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the scores of all pairs; a tensor where PyTorch is in use, as the tasks expect it."""
        scores = self.retriever.space.compare(_array(embeddings1), _array(embeddings2), "text_query")
        torch = sys.modules.get("torch")
        return scores if torch is None else torch.from_numpy(np.ascontiguousarray(scores))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the score of each row with the row beside it."""
        pairs = zip(_array(embeddings1), _array(embeddings2), strict=True)
        scores = np.array([self.retriever.space.compare(a[None], b[None], "text_query")[0, 0] for a, b in pairs])
        torch = sys.modules.get("torch")
        return scores if torch is None else torch.from_numpy(scores)

    def _points(self, batch: Any, prompt_type: Any) -> AnyArray:
        texts, images = ([batch] if name in batch else None for name in ("text", "image"))
        return self.get_fused_embeddings(texts, images, prompt_type=prompt_type)


def retriever_of_mteb(model: Any, *, name: str = "mteb") -> Retriever:
    """Return a retriever on a model that follows MTEB's interface for pictures and texts; nothing is imported.

    The model has ``get_image_embeddings`` and ``get_text_embeddings``, or ``encode``. Points are compared by cosine, a
    cosine of a quarter is as likely right as wrong until `Retriever.calibrated` learns better, and the model stays
    where it is: such a retriever encodes, compares and evaluates, but can be neither saved nor that of a collection.

    >>> import numpy as np
    >>> from diptych.retriever import retriever_of_mteb
    >>> class Brightness:
    ...     def get_text_embeddings(self, texts, **options):
    ...         return np.array([[1.0, 0.0] if "dark" in text else [0.0, 1.0] for text in texts])
    ...     def get_image_embeddings(self, images, **options):
    ...         return np.array([[1 - np.mean(image) / 255, np.mean(image) / 255] for image in images])
    >>> retriever = retriever_of_mteb(Brightness())
    >>> night = np.zeros((8, 8, 3), dtype=np.uint8)
    >>> retriever.similarity([night], ["a dark picture", "a bright one"]).round().tolist()
    [[1.0, 0.0]]
    """
    retriever = Retriever(name=name, cache=False)
    retriever.image_encoder_, retriever.text_encoder_ = _MTEBImages(model), _MTEBTexts(model)
    width = retriever.text_encoder_.n_features
    retriever.model_ = SharedSpace().fit(np.eye(1, width), np.eye(1, width))
    retriever.calibration_ = Calibration.assumed(100.0, -25.0)
    return retriever


class _Batches:
    """Items as batches, in the form of the loaders that version 2 of the library hands to models."""

    def __init__(self, kind: str, items: Sequence[Any]) -> None:
        self._kind, self._items = kind, items
        self.dataset = SimpleNamespace(features={kind: None})

    def __iter__(self) -> Iterator[dict[str, list[Any]]]:
        for start in range(0, len(self._items), _BATCH):
            yield {self._kind: list(self._items[start : start + _BATCH])}

    def __len__(self) -> int:
        return -(-len(self._items) // _BATCH)


def _embedded(model: Any, kind: str, items: Sequence[Any]) -> FloatArray:
    """Return what a model makes of texts or pictures, whichever version's methods it has."""
    method: Any = getattr(model, f"get_{kind}_embeddings", None)
    encode: Any = getattr(model, "encode", None)
    if method is None and encode is None:
        raise InvalidInputError(
            f"{type(model).__name__} has neither get_{kind}_embeddings nor encode, as MTEB's models"
        )
    takes_batches = encode is not None and "task_metadata" in inspect.signature(encode).parameters
    given = _Batches(kind, items) if takes_batches or method is None else list(items)
    if method is not None:
        found = method(given)
    else:
        found = encode(given, task_metadata=None, hf_split="test", hf_subset="default")
    rows = np.asarray(_array(found), dtype=np.float32)
    if rows.ndim != 2 or len(rows) != len(items):
        raise InvalidInputError(
            f"{type(model).__name__} gave an array {rows.shape} for {len(items)} items; one row each"
        )
    return rows


class _ForeignSide(Encoder):
    """One side of a stranger's model, of whose weights nothing is known but what they make of something."""

    learns: ClassVar[bool] = False
    model: Any

    @cached_property
    @abstractmethod
    def _probe(self) -> FloatArray: ...

    @property
    def identity(self) -> str:
        return f"MTEB({type(self.model).__name__})"

    @property
    def weights_digest(self) -> str:
        return hashlib.sha256(self._probe.round(3).tobytes()).hexdigest()

    @property
    def n_features(self) -> int:
        return int(self._probe.shape[1])


class _MTEBTexts(_ForeignSide):
    def __init__(self, model: Any) -> None:
        self.model = model

    @cached_property
    def _probe(self) -> FloatArray:
        return _embedded(self.model, "text", ["a photo of a boat"])

    def fit(self, items: Sequence[str]) -> Self:
        del items
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        check_texts(items)
        return _embedded(self.model, "text", list(items))


class _MTEBImages(_ForeignSide, ImageEncoder):
    def __init__(self, model: Any, *, batch_size: int = _BATCH, n_threads: int | None = None) -> None:
        self.model = model
        self.batch_size = batch_size
        self.n_threads = n_threads

    @cached_property
    def _probe(self) -> FloatArray:
        return self.encode_prepared([np.arange(192, dtype=np.uint8).reshape(8, 8, 3)])

    @property
    def reading_side(self) -> int:
        # Models of today look at squares of at most about five hundred pixels.
        return 512

    def prepare(self, picture: Picture) -> AnyArray:
        return self.read(picture)

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        from PIL import Image

        return _embedded(self.model, "image", [Image.fromarray(pixels) for pixels in prepared])


def _parts(items: Iterable[Any], kind: str) -> Iterator[Any]:
    for item in items:
        if isinstance(item, dict) or hasattr(item, "keys"):
            yield from item[kind]
        else:
            yield item


def _array(values: Any) -> AnyArray:
    """Return an array, or a tensor of whatever device, as an array."""
    plain = values.detach().cpu().float().numpy() if hasattr(values, "detach") else values
    return np.asarray(plain)


def _picture(image: Any) -> Any:
    """Return a picture; a tensor (channels, height, width), of bytes or of numbers from 0 to 1, as pixels."""
    if not hasattr(image, "detach"):
        return image
    values = image.detach().cpu().numpy()
    pixels = values if values.dtype == np.uint8 else np.clip(values * 255, 0, 255).round().astype(np.uint8)
    return np.ascontiguousarray(pixels.transpose(1, 2, 0))
