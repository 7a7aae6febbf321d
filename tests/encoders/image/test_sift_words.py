from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from diptych.data import load_dataset
from diptych.encoders import SiftTopics, SiftWords
from diptych.errors import InvalidInputError, MissingPackageError


def texture(kind: int, seed: int, side: int = 72) -> np.ndarray:
    """Return noise smoothed along one axis or neither, so that the local gradients tell the kinds apart."""
    noise = np.random.default_rng([kind, seed]).normal(size=(side, side)).astype(np.float32)
    blur = [(1, 9), (9, 1), (3, 3)][kind]
    smooth = cv2.GaussianBlur(noise, blur, 0) if kind == 2 else cv2.blur(noise, blur)
    grey = np.clip(128 + 90 * smooth / smooth.std(), 0, 255).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)


@pytest.fixture(scope="module")
def pictures() -> list[np.ndarray]:
    return [texture(kind, seed) for kind in range(3) for seed in range(8)]


def test_a_histogram_is_the_share_of_descriptors_nearest_to_each_word(pictures: list[np.ndarray]) -> None:
    encoder = SiftWords(n_words=16).fit(pictures)
    grey = np.asarray(Image.fromarray(pictures[5]).convert("L"))
    _, descriptors = cv2.SIFT_create().detectAndCompute(grey, None)
    distances = ((descriptors[:, None].astype(np.float64) - encoder.centres_[None]) ** 2).sum(axis=2)
    expected = np.bincount(distances.argmin(axis=1), minlength=16) / len(descriptors)
    np.testing.assert_allclose(encoder.transform([pictures[5]])[0], expected, atol=1e-6)


# Points are described along their own direction, so they cannot tell which way stripes run.
def test_topics_are_those_of_the_words(pictures: list[np.ndarray]) -> None:
    """The words are those of the codebook alone; a picture has equal proportions alone and in a batch."""
    words, topics = SiftWords(n_words=6).fit(pictures), SiftTopics(n_words=6, n_topics=2).fit(pictures)
    np.testing.assert_array_equal(words.prepare(pictures[0]), topics.prepare(pictures[0]))
    together = topics.transform(pictures)
    assert together.shape == (len(pictures), 2)
    np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(topics.transform(pictures[1:2])[0], together[1], atol=1e-6)
    weights = topics.components_ / topics.components_.sum(axis=1, keepdims=True)
    assert np.abs(weights[0] - weights[1]).sum() > 0.01


def test_textures_are_told_apart() -> None:
    kinds = (0, 2)
    known = [texture(kind, seed) for kind in kinds for seed in range(8)]
    fresh = [texture(kind, seed) for kind in kinds for seed in range(100, 105)]
    fitted = SiftWords(n_words=16).fit(known)
    centroids = fitted.transform(known).reshape(2, 8, -1).mean(axis=1)
    guesses = ((fitted.transform(fresh)[:, None] - centroids[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert np.mean(guesses == np.repeat([0, 1], 5)) >= 0.8


def test_turned_pictures_keep_the_words_of_their_interest_points(pictures: list[np.ndarray]) -> None:
    encoder = SiftWords(n_words=16).fit(pictures)
    found, turned = encoder.transform([pictures[0], np.rot90(pictures[0]).copy()])
    other = encoder.transform([pictures[-1]])[0]
    assert np.minimum(found, turned).sum() > 0.8 > np.minimum(found, other).sum()


def test_manners(pictures: list[np.ndarray], tmp_path: Path) -> None:
    encoder = SiftWords(n_words=16)
    assert encoder.modality == "image"
    assert encoder.learns
    with pytest.raises(NotFittedError):
        clone(encoder).transform(pictures)
    fitted = clone(encoder).fit(pictures)
    features = fitted.transform(pictures)
    assert features.dtype == np.float32
    assert features.shape == (24, fitted.n_features)
    for row in (0, 13):
        np.testing.assert_allclose(fitted.transform([pictures[row]])[0], features[row], atol=1e-6)
    again = clone(encoder).set_params(n_threads=1, batch_size=5).fit(pictures)
    np.testing.assert_array_equal(again.transform(pictures), features)
    assert again.fingerprint == fitted.fingerprint
    learned = {name: value for name, value in vars(fitted).items() if name not in fitted.get_params()}
    assert set(learned) == {"centres_"}
    assert all(isinstance(value, np.ndarray) for value in learned.values())
    Image.fromarray(pictures[3]).save(tmp_path / "three.png")
    np.testing.assert_array_equal(fitted.transform([tmp_path / "three.png"])[0], features[3])
    np.testing.assert_array_equal(fitted.prepare(fitted.read(pictures[3])), fitted.prepare(pictures[3]))


def test_pictures_without_interest_points(pictures: list[np.ndarray]) -> None:
    flat = [np.zeros((*shape, 3), dtype=np.uint8) for shape in ((1, 1), (1, 300), (7, 7), (8, 8), (64, 64))]
    assert not SiftWords(n_words=16).fit(pictures).transform(flat).any()
    with pytest.raises(InvalidInputError, match="no interest point"):
        SiftWords().fit(flat)


def test_the_sample_of_descriptors_is_bounded(pictures: list[np.ndarray]) -> None:
    encoder = SiftWords(n_words=8, max_descriptors=60)
    sample = encoder._sample(pictures)
    # One picture, because a hundred descriptors of one are enough.
    assert sample.shape == (60, 128)
    np.testing.assert_array_equal(encoder._sample(pictures), sample)
    assert not np.array_equal(encoder.set_params(random_state=1)._sample(pictures), sample)
    assert encoder.fit(pictures).centres_.shape == (8, 128)


def test_few_descriptors_make_a_smaller_codebook(pictures: list[np.ndarray]) -> None:
    encoder = SiftWords(n_words=5000).fit(pictures[:1])
    assert 0 < encoder.n_features < 5000
    assert encoder.transform(pictures[:2]).shape == (2, encoder.n_features)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (SiftWords(n_words=0), "n_words must be at least 1"),
        (SiftWords(size=0), "size must be at least 1"),
        (SiftWords(max_descriptors=10), r"max_descriptors must be at least n_words \(1024\)"),
        (SiftWords(batch_size=0), "batch_size must be at least 1"),
    ],
)
def test_parameters_are_checked(encoder: SiftWords, message: str, pictures: list[np.ndarray]) -> None:
    with pytest.raises(InvalidInputError, match=message):
        encoder.fit(pictures)


def test_bad_pictures_are_named(pictures: list[np.ndarray]) -> None:
    encoder = SiftWords(n_words=16)
    with pytest.raises(InvalidInputError, match=r"nowhere\.jpg"):
        encoder.fit([*pictures, "nowhere.jpg"])
    with pytest.raises(InvalidInputError, match="pass it in a list"):
        encoder.fit("nowhere.jpg")
    with pytest.raises(InvalidInputError, match="no pictures"):
        encoder.fit([])
    with pytest.raises(InvalidInputError, match="no pictures"):
        encoder.fit(pictures).transform([])
    failures = [batch.failures for batch in encoder.stream([pictures[0], "nowhere.jpg"])]
    assert [list(rows) for rows in failures] == [[1]]


def test_without_open_cv_the_command_is_named(monkeypatch: pytest.MonkeyPatch, pictures: list[np.ndarray]) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingPackageError, match="pip install opencv-python-headless"):
        SiftWords().fit(pictures)


@pytest.mark.data("pascal_sentence")
def test_photographs_of_a_class_share_words() -> None:
    splits = load_dataset("pascal_sentence", captions="join")
    labels = np.asarray(splits.train.labels)
    rows = [np.flatnonzero(labels == label) for label in ("aeroplane", "sheep")]
    photographs = [splits.train.images[row] for row in np.concatenate(rows)]
    owners = np.repeat([0, 1], [len(own) for own in rows])
    assert len(owners) >= 60
    features = np.sqrt(SiftWords(n_words=64, size=128).fit_transform(photographs))
    similarity = features @ features.T - 2 * np.eye(len(owners))
    hits = owners[similarity.argmax(axis=1)] == owners
    # By chance it is a half, with a standard deviation of 0.06.
    assert hits.mean() > 0.62
