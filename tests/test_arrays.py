"""What may be given as rows, words and pictures: tensors, tables and columns; what can be read but once is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from diptych import Retriever
from diptych.data import Pairs, load_dataset
from diptych.encoders import ColourEdgeHistograms, SentenceEncoder, TfidfTopics
from diptych.errors import InvalidInputError
from diptych.models import CCA, SM

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(30, 4))
TEXTS = IMAGES @ RNG.normal(size=(4, 3))
WORDS = ["a red boat", "a blue car", "a green house"]
PICTURES = [np.full((8, 8, 3), shade, dtype=np.uint8) for shade in (0, 90, 255)]


@pytest.fixture(scope="module")
def retriever() -> Retriever:
    pairs = load_dataset("scenes", n_train=40, n_test=1, size=32).train
    parts: dict[str, Any] = {
        "image_encoder": ColourEdgeHistograms(size=32),
        "text_encoder": TfidfTopics(n_components=8),
    }
    return Retriever(model=CCA(n_components=4), cache=False, **parts).fit(pairs, baseline=None)


@pytest.mark.parametrize(
    "given",
    [
        lambda rows: torch.tensor(rows, requires_grad=True),
        lambda rows: pd.DataFrame(rows, index=range(100, 130)),
        lambda rows: pd.DataFrame(rows).astype("Float64"),
    ],
    ids=["gradient", "table", "nullable"],
)
def test_a_model_takes_tensors_and_tables(given: Any) -> None:
    expected = CCA(n_components=2).fit(IMAGES, TEXTS)
    model = CCA(n_components=2).fit(given(IMAGES), given(TEXTS))
    np.testing.assert_allclose(model.encode_images(given(IMAGES)), expected.encode_images(IMAGES))
    pairs = Pairs(given(IMAGES), given(TEXTS))
    np.testing.assert_array_equal(pairs.images, IMAGES)


def test_short_tensors_are_widened_and_labels_may_be_columns() -> None:
    rows = torch.tensor(IMAGES).bfloat16()
    model = CCA(n_components=2).fit(rows, TEXTS)
    np.testing.assert_array_equal(model.encode_images(rows), model.encode_images(rows.float().numpy()))
    labels = np.arange(30) % 3
    expected = SM().fit(IMAGES, TEXTS, labels).encode_images(IMAGES)
    for given in (torch.tensor(labels), pd.Series(labels, index=range(5, 35)), pd.Series(labels).astype("category")):
        np.testing.assert_allclose(SM().fit(IMAGES, TEXTS, given).encode_images(IMAGES), expected)


def test_columns_of_words_and_pictures_are_taken_whatever_their_index(retriever: Retriever) -> None:
    words, pictures = pd.Series(WORDS, index=[7, 8, 9]), pd.Series(PICTURES, index=[7, 8, 9])
    encoder = ColourEdgeHistograms()
    np.testing.assert_array_equal(encoder.transform(pictures), encoder.transform(PICTURES))
    np.testing.assert_array_equal(retriever.encode_texts(words), retriever.encode_texts(WORDS))
    np.testing.assert_array_equal(retriever.encode_images(pictures), retriever.encode_images(PICTURES))
    assert Pairs(IMAGES[:3], words).texts == tuple(WORDS)


def test_what_can_be_read_but_once_is_refused(retriever: Retriever) -> None:
    model = CCA(n_components=2).fit(IMAGES, TEXTS)
    for ask in (
        lambda: CCA().fit((row for row in IMAGES), TEXTS),
        lambda: model.encode_texts(row for row in TEXTS),
        lambda: TfidfTopics(min_documents=1).fit(word for word in WORDS),
        lambda: SentenceEncoder().transform(map(str.upper, WORDS)),
        lambda: ColourEdgeHistograms().transform(picture for picture in PICTURES),
        lambda: retriever.encode_texts(word for word in WORDS),
        lambda: retriever.encode_images(iter(PICTURES)),
    ):
        with pytest.raises(InvalidInputError, match="can be read but once; pass a"):
            ask()
    with pytest.raises(InvalidInputError, match="pictures must be a sequence, got NoneType"):
        ColourEdgeHistograms().transform(None)
    with pytest.raises(InvalidInputError, match="got generator"):
        Pairs((row for row in IMAGES), TEXTS)


def test_tables_of_the_wrong_kind_are_named(retriever: Retriever) -> None:
    with pytest.raises(InvalidInputError, match="columns that are no numbers"):
        CCA().fit(pd.DataFrame(IMAGES).assign(name="x"), TEXTS)
    missing = pd.DataFrame(IMAGES).astype("Float64")
    missing.iloc[3, 1] = pd.NA
    with pytest.raises(InvalidInputError, match="NaN or infinity, first in row 3"):
        CCA().fit(missing, TEXTS)
    for ask in (TfidfTopics().fit, retriever.encode_texts):
        with pytest.raises(InvalidInputError, match="texts is a table; pass one of its columns"):
            ask(pd.DataFrame({"text": WORDS}))
