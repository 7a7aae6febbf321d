"""Retrievers under the methods of MTEB's models."""

from __future__ import annotations

import sys
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from PIL import Image

from diptych import Retriever
from diptych.data import load_dataset
from diptych.encoders import ColourEdgeHistograms, Encoder, ImageEncoder, TfidfTopics, read_picture
from diptych.errors import InvalidInputError, MissingPackageError
from diptych.models import CVH, SharedSpace
from diptych.retriever import MTEBModel

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
PICTURES = [Image.new("RGB", (16, 12), colour) for colour in COLOURS.values()]
TEXTS = [f"all of it is {name}" for name in COLOURS]


def mean_colours(images: Any) -> np.ndarray:
    return np.array([np.asarray(image).reshape(-1, 3).mean(axis=0) + 1 for image in images])


def named_colours(texts: Any) -> np.ndarray:
    named = [next((value for name, value in COLOURS.items() if name in text), (9, 9, 9)) for text in texts]
    return np.array(named) + 1.0


class Colours(ImageEncoder):
    """Mean colours."""

    learns = False
    n_features = 3
    reading_side = 16

    def prepare(self, picture: Any) -> Any:
        return self.read(picture)

    def encode_prepared(self, prepared: Any) -> Any:
        return mean_colours(prepared)


class Names(Encoder):
    """The colours that texts name."""

    learns = False

    def fit(self, items: Any) -> Any:
        return self

    def transform(self, items: Any) -> Any:
        return named_colours(items)


def colours() -> Retriever:
    retriever = Retriever(name="colours", cache=False)
    retriever.image_encoder_, retriever.text_encoder_ = Colours(), Names()
    retriever.model_ = SharedSpace().fit(np.eye(1, 3), np.eye(1, 3))
    return retriever


def test_a_retriever_of_ours_answers_to_their_methods() -> None:
    retriever = colours()
    model = MTEBModel(retriever)
    batches = [{"image": PICTURES[:2]}, {"image": PICTURES[2:]}]
    images = model.encode(batches, task_metadata=None, hf_split="test", hf_subset="default", prompt_type="query")
    np.testing.assert_array_equal(images, retriever.encode_images(PICTURES))
    texts = model.encode(batches_of(TEXTS))
    scores = model.similarity(images, texts)
    np.testing.assert_allclose(np.asarray(scores), retriever.similarity(PICTURES, TEXTS), atol=1e-6)
    np.testing.assert_allclose(np.asarray(model.similarity_pairwise(images, texts)), np.diagonal(scores), atol=1e-6)
    fused = model.encode([{"text": TEXTS, "image": PICTURES}])
    assert np.asarray(model.similarity(fused, texts)).argmax(axis=1).tolist() == [0, 1, 2]
    with pytest.raises(InvalidInputError, match="nothing to encode"):
        model.encode([])


def test_texts_that_are_queries_are_read_as_searches_read_them() -> None:
    model = MTEBModel(Retriever.ready_made("default"))
    as_query, as_text = (
        model.encode([{"text": ["a photo of a dog"]}], prompt_type=kind) for kind in (PromptType.QUERY, None)
    )
    searched = model.retriever.texts_to_points(model.retriever.query_features(["a photo of a dog"]))
    np.testing.assert_array_equal(as_query, searched)
    np.testing.assert_array_equal(as_text, model.retriever.encode_texts(["a photo of a dog"]))
    assert not np.array_equal(as_query, as_text)


class PromptType(Enum):
    """As the library's own."""

    QUERY = "query"


def test_without_the_library_what_describes_a_model_to_it_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mteb.models.model_meta", None)
    with pytest.raises(MissingPackageError, match="pip install mteb"):
        _ = MTEBModel(colours()).mteb_model_meta


def test_tasks_of_the_library_run_with_our_retrievers() -> None:
    """Where it is installed, which nothing of ours asks for: it brings PyTorch and many packages."""
    mteb, datasets = pytest.importorskip("mteb"), pytest.importorskip("datasets")
    retrieval, described = (import_module(f"mteb.abstasks.{name}") for name in ("retrieval", "task_metadata"))
    texts = [{"id": text, "text": text} for text in TEXTS]
    pictures = [{"id": f"{text}.png", "image": picture} for text, picture in zip(TEXTS, PICTURES, strict=True)]

    class Colours(retrieval.AbsTaskRetrieval):
        metadata = described.TaskMetadata(
            name="Colours",
            description="Pictures of one colour by its name.",
            dataset={"path": "none", "revision": "1"},
            type="Any2AnyRetrieval",
            category="t2i",
            modalities=["text", "image"],
            eval_langs=["eng-Latn"],
            main_score="recall_at_1",
        )

        def load_data(self, *given: Any, **named: Any) -> None:
            asked = {"relevant_docs": {text: {f"{text}.png": 1} for text in TEXTS}, "top_ranked": None}
            sides = {"queries": datasets.Dataset.from_list(texts), "corpus": datasets.Dataset.from_list(pictures)}
            self.dataset, self.data_loaded = {"default": {"test": {**sides, **asked}}}, True

    model = MTEBModel(colours())
    found = mteb.evaluate(model, [Colours()], cache=None)
    assert found.model_name == "diptych/colours"
    assert found.task_results[0].scores["test"][0]["recall_at_1"] == 1


def batches_of(texts: list[str]) -> list[dict[str, list[str]]]:
    return [{"text": [text]} for text in texts]


def test_tensors_of_pixels_are_pictures() -> None:
    torch = pytest.importorskip("torch")
    model = MTEBModel(colours())
    pixels = np.stack([read_picture(picture) for picture in PICTURES])
    tensors = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    expected = model.encode([{"image": PICTURES}])
    np.testing.assert_allclose(model.encode([{"image": tensors}]), expected, atol=1e-5)
    np.testing.assert_allclose(model.encode([{"image": tensors.float() / 255}]), expected, atol=1e-5)
    assert isinstance(model.similarity(torch.from_numpy(expected), torch.from_numpy(expected)), torch.Tensor)


def test_points_without_common_sums_are_refused() -> None:
    encoders: dict[str, Any] = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    pairs = load_dataset("scenes", n_train=40, n_test=1, size=32).train
    retriever = Retriever(model=CVH(n_bits=8), cache=False, **encoders).fit(pairs, baseline=None)
    with pytest.raises(InvalidInputError, match="compares by cosine"):
        MTEBModel(retriever).encode([{"text": TEXTS[:1], "image": PICTURES[:1]}])
