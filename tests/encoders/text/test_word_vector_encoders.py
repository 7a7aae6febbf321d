from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from diptych.data import load_dataset
from diptych.encoders import MeanWordVectors, WordVectorCodebook, WordVectors, load_word_vectors
from diptych.encoders.clustering import learn_centres, nearest_centres
from diptych.encoders.text.word_vector_encoders import WordVectorEncoder
from diptych.errors import InvalidInputError

WORDS = ["red", "boat", "ship", "cat", "dog", "grass"]
TABLE = WordVectors(WORDS, np.random.default_rng(0).normal(size=(6, 4)))
TEXTS = ["red boat", "red red ship", "cat on grass", "dog on grass", "nothing known", "red cat"]

ENCODERS = [
    MeanWordVectors(vectors=TABLE),
    WordVectorCodebook(vectors=TABLE, n_words=3),
]


def by_name(encoder: WordVectorEncoder) -> str:
    return encoder.identity.replace(repr(TABLE), "TABLE")


@given(st.lists(st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6), min_size=1, max_size=5))
def test_a_plain_mean_is_the_mean_of_the_known_words(texts: list[list[str]]) -> None:
    found = MeanWordVectors(vectors=TABLE, stop_words=None).transform([" ".join(words) for words in texts])
    for row, words in zip(found, texts, strict=True):
        known = [TABLE[word] for word in words if word in TABLE]
        np.testing.assert_allclose(row, np.mean(known, axis=0) if known else np.zeros(4), atol=1e-6)


def test_a_mean_needs_no_fit_and_a_codebook_does() -> None:
    assert not MeanWordVectors(vectors=TABLE).learns
    assert MeanWordVectors(vectors=TABLE).transform(["red"]).shape == (1, 4)
    for encoder in ENCODERS[1:]:
        assert encoder.learns
        with pytest.raises(NotFittedError):
            clone(encoder).transform(["red"])


@pytest.mark.parametrize("encoder", ENCODERS, ids=by_name)
def test_manners(encoder: WordVectorEncoder) -> None:
    fitted = clone(encoder).fit(TEXTS)
    assert fitted.identity == encoder.identity
    assert TABLE.digest in fitted.identity
    assert fitted.weights_digest == TABLE.digest
    features = fitted.transform(TEXTS)
    assert features.dtype == np.float32
    assert not features[4].any()
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(fitted.transform([text])[0], features[row], atol=1e-6)
    again = clone(encoder).fit(TEXTS)
    np.testing.assert_array_equal(again.transform(TEXTS), features)
    assert again.fingerprint == fitted.fingerprint
    learned = {name: value for name, value in vars(fitted).items() if name not in fitted.get_params()}
    assert all(name.endswith("_") and isinstance(value, (np.ndarray, float, str)) for name, value in learned.items())
    with pytest.raises(InvalidInputError, match="no texts"):
        fitted.transform([])
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        fitted.fit("red boat")


def test_another_table_is_refused() -> None:
    fitted = clone(ENCODERS[1]).fit(TEXTS)
    fitted.set_params(vectors=WordVectors(WORDS, TABLE.vectors + 1))
    with pytest.raises(InvalidInputError, match="not those this encoder was fitted with"):
        fitted.transform(TEXTS)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (WordVectorCodebook(vectors=TABLE, n_words=0), "n_words must be at least 1"),
        (WordVectorCodebook(vectors="nowhere.bin"), "nowhere.bin does not exist"),
    ],
)
def test_parameters_are_checked(encoder: WordVectorEncoder, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        encoder.fit(TEXTS)


@pytest.mark.parametrize("kind", [MeanWordVectors, WordVectorCodebook])
def test_a_path_and_its_text_are_one_parameter(tmp_path: Path, kind: type[WordVectorEncoder]) -> None:
    path = tmp_path / "tiny.txt"
    path.write_text("boat 1.0 0.0\ncat 0.0 2.0\n")
    by_path, by_text = kind(vectors=path), kind(vectors=str(path))
    assert by_path.fingerprint == by_text.fingerprint
    # What is saved is written down as JSON.
    assert json.loads(json.dumps(by_path.get_params())) == by_text.get_params()
    assert clone(by_path).fingerprint == by_text.fingerprint


def test_a_histogram_counts_the_nearest_centres() -> None:
    encoder = WordVectorCodebook(vectors=TABLE, n_words=3).fit(TEXTS)
    distances = np.linalg.norm(TABLE.vectors[:, None] - encoder.centres_[None], axis=2)
    group = dict(zip(WORDS, distances.argmin(axis=1), strict=True))
    histograms = encoder.transform(TEXTS)
    for row, text in zip(histograms, TEXTS, strict=True):
        expected = np.zeros(3)
        for word in text.split():
            if word in group:
                expected[group[word]] += 1
        np.testing.assert_allclose(row, expected / max(1, expected.sum()), atol=1e-6)


def test_centres_find_separate_clouds_and_never_outnumber_the_vectors() -> None:
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0], [0, 50], [50, 0], [50, 50]])
    clouds = np.concatenate([corner + rng.normal(size=(100, 2)) for corner in corners])
    centres = learn_centres(clouds, 4)
    np.testing.assert_allclose(centres[nearest_centres(corners, centres)], corners, atol=1)
    np.testing.assert_array_equal(learn_centres(clouds, 4, seed=0), centres)
    assert learn_centres(clouds[:3], 10).shape == (3, 2)
    assert learn_centres(rng.normal(size=(900, 3)), 300).shape == (300, 3)


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
    guesses = [names[row] for row in nearest_centres(test, points)]
    assert np.mean(np.asarray(guesses) == np.asarray(splits.test.labels)) > 0.5
