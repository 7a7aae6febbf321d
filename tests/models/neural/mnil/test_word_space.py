"""The words of a trained network: its own vectors, and what its memory answers to each."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from diptych.encoders import nearest_words
from diptych.errors import InvalidInputError
from diptych.models import MNiL
from diptych.models.neural.mnil.word_space import learned_words

KINDS = (("sea", "ocean"), ("hill", "mountain"), ("street", "road"))


@pytest.fixture(scope="module")
def model() -> MNiL:
    """Words of a kind are used for the same pictures, so that only the pictures tell which are alike."""
    rng = np.random.default_rng(0)
    kinds = np.arange(120) % 3
    images = 3 * np.eye(3)[kinds] @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(120, 8))
    texts = [f"a {KINDS[kind][rng.integers(2)]}" for kind in kinds]
    settings = {"word_size": 12, "hidden_size": 12, "n_components": 6, "batch_size": 24, "learning_rate": 5e-3}
    return MNiL(image_tower="features", epochs=12, dropout=0.0, device="cpu", **settings).fit(images, texts, kinds)


def test_words_used_for_the_same_pictures_end_up_side_by_side(model: MNiL) -> None:
    table = learned_words(model)
    for first, second in KINDS:
        assert nearest_words(table, first, k=1)[0].word == second
        assert nearest_words(table, second, k=1)[0].word == first


def test_an_embedding_is_what_the_network_reads(model: MNiL) -> None:
    table = learned_words(model, "embedding")
    codes, _ = model.encode_words(["mountain"])
    np.testing.assert_array_equal(table["mountain"], model.text_arrays_[0][codes[0, 0]])


def test_the_memory_answers_as_the_network_does(model: MNiL) -> None:
    """A text of one word, mapped as the model maps it, is the model's point of that text."""
    answers = learned_words(model, "memory")
    arrays = dict(zip(model.text_names_, model.text_arrays_, strict=True))
    mapped = answers.vectors @ arrays["map.weight"].T + arrays["map.bias"]
    mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
    np.testing.assert_allclose(mapped, model.encode_texts(list(answers.words)), atol=1e-5)


def test_what_there_is_not_is_refused(model: MNiL) -> None:
    with pytest.raises(NotFittedError):
        learned_words(MNiL())
    with pytest.raises(InvalidInputError, match="layer must be one of 'memory', 'embedding'"):
        learned_words(model, "third")
