"""A retriever with a hashing method: outputs, codes, probabilities and explanations."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from diptych.codes import pack_signs
from diptych.data import Pairs, load_dataset
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.errors import InvalidInputError
from diptych.models import CCA, CVH, CrossModalModel, Preprocessed
from diptych.retriever import SEARCH_DIRECTIONS, Retriever, explain
from tests.models.hashing.sure_bits import assert_same_bits


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    drawn = load_dataset("scenes", n_train=80, n_test=20, size=32).train
    return drawn.with_features(images=ColourEdgeHistograms(size=32).transform(drawn.images))


@pytest.fixture(scope="module")
def retriever(pairs: Pairs) -> Retriever:
    parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    return Retriever(model=CVH(n_bits=20), cache=False, **parts).fit(pairs, baseline=None)


def with_model(retriever: Retriever, pairs: Pairs, model: CrossModalModel) -> Retriever:
    """Return the retriever with another model on the same encoders."""
    other = copy.copy(retriever)
    other.model_ = model.fit(*retriever.featured(pairs).aligned())
    return other


def test_probabilities_fall_with_the_distance(retriever: Retriever) -> None:
    for direction in SEARCH_DIRECTIONS:
        chances = retriever.probability(-np.arange(21.0), direction)
        assert ((np.diff(chances) < 0) & (chances[1:] > 0)).all()
    assert 0 < retriever.cutoff < 1


@pytest.mark.parametrize("scaling", [None, "hellinger"])
def test_codes_are_the_signs_of_the_outputs_also_when_read_again(
    retriever: Retriever, pairs: Pairs, scaling: Literal["hellinger"] | None, tmp_path: Path
) -> None:
    if scaling is not None:
        retriever = with_model(retriever, pairs, Preprocessed(model=CVH(n_bits=20), images=scaling))
    images = np.asarray(pairs.images[:5])
    texts = retriever.text_features(pairs.texts[:5])
    retriever.save(tmp_path / "r")
    for one in (retriever, Retriever.load(tmp_path / "r")):
        assert one.images_to_outputs(images).shape == (5, 20)
        np.testing.assert_array_equal(pack_signs(one.images_to_outputs(images)), retriever.images_to_points(images))
        np.testing.assert_array_equal(pack_signs(one.texts_to_outputs(texts)), retriever.encode_texts(pairs.texts[:5]))
        outputs = one.images_to_outputs(images)
        assert_same_bits(one.encode_images(images[:1]), retriever.images_to_points(images)[:1], outputs[:1])


def test_a_code_is_explained_by_the_bits_that_each_word_wins(retriever: Retriever) -> None:
    picture = load_dataset("scenes", n_train=1, n_test=1, size=32).train.images[0]
    for words in ("a red ball", "ball"):
        explanation = explain(retriever, words, picture)
        assert explanation.kind == "words"
        assert explanation.score == retriever.similarity([picture], [words])[0, 0]
        assert [bar.name for bar in explanation.bars] == words.split()
    # An only word is compared with a code that agrees in half of the bits, which is luck.
    assert explanation.bars[0].contribution == explanation.score + 10


def test_vectors_have_no_outputs_before_a_sign(retriever: Retriever, pairs: Pairs) -> None:
    for model in (CCA(n_components=4), Preprocessed(model=CCA(n_components=4))):
        other = with_model(retriever, pairs, model)
        with pytest.raises(InvalidInputError, match="hashing method"):
            other.images_to_outputs(pairs.images[:1])
