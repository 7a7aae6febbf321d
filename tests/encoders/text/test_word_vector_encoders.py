from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone

from diptych.data import load_dataset
from diptych.encoders import MeanWordVectors, WordVectors, load_word_vectors
from diptych.errors import InvalidInputError

WORDS = ["red", "boat", "ship", "cat", "dog", "grass"]
TABLE = WordVectors(WORDS, np.random.default_rng(0).normal(size=(6, 4)))
TEXTS = ["red boat", "red red ship", "cat on grass", "dog on grass", "nothing known", "red cat"]


@given(st.lists(st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6), min_size=1, max_size=5))
def test_a_plain_mean_is_the_mean_of_the_known_words(texts: list[list[str]]) -> None:
    found = MeanWordVectors(vectors=TABLE, stop_words=None).transform([" ".join(words) for words in texts])
    for row, words in zip(found, texts, strict=True):
        known = [TABLE[word] for word in words if word in TABLE]
        np.testing.assert_allclose(row, np.mean(known, axis=0) if known else np.zeros(4), atol=1e-6)


def test_manners() -> None:
    encoder = MeanWordVectors(vectors=TABLE)
    fitted = clone(encoder).fit(TEXTS)
    assert fitted.identity == encoder.identity
    assert TABLE.digest in fitted.identity
    assert fitted.weights_digest == TABLE.digest
    features = encoder.transform(TEXTS)
    assert features.dtype == np.float32
    assert not features[4].any()
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(fitted.transform([text])[0], features[row], atol=1e-6)
    with pytest.raises(InvalidInputError, match="no texts"):
        fitted.transform([])
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        fitted.fit("red boat")


def test_a_path_and_its_text_are_one_parameter(tmp_path: Path) -> None:
    path = tmp_path / "tiny.txt"
    path.write_text("boat 1.0 0.0\ncat 0.0 2.0\n")
    by_path, by_text = MeanWordVectors(vectors=path), MeanWordVectors(vectors=str(path))
    assert by_path.fingerprint == by_text.fingerprint
    # What is saved is written down as JSON.
    assert json.loads(json.dumps(by_path.get_params())) == by_text.get_params()
    assert clone(by_path).fingerprint == by_text.fingerprint


def test_alike_captions_are_near_with_the_packaged_vectors() -> None:
    encoder = MeanWordVectors(vectors="glove-50d")
    dogs, puppies, ships = encoder.transform(
        ["two dogs run on grass", "a puppy playing in a field", "ships in a harbour"]
    )
    cosine = [
        first @ second / np.linalg.norm(first) / np.linalg.norm(second)
        for first, second in ((dogs, puppies), (dogs, ships))
    ]
    assert cosine[0] > cosine[1] + 0.1
    assert encoder.weights_digest == load_word_vectors("glove-50d").digest


def test_captions_of_scenes_are_classified_by_their_words() -> None:
    splits = load_dataset("scenes", n_train=300, n_test=100, size=32, captions="join")
    encoder = MeanWordVectors(vectors="glove-50d")
    train, test = encoder.fit_transform(splits.train.texts), encoder.transform(splits.test.texts)
    centroids = {
        label: train[np.asarray(splits.train.labels) == label].mean(axis=0) for label in set(splits.train.labels)
    }
    names, points = list(centroids), np.array(list(centroids.values()))
    guesses = [names[row] for row in cdist(test, points).argmin(axis=1)]
    assert np.mean(np.asarray(guesses) == np.asarray(splits.test.labels)) > 0.5
