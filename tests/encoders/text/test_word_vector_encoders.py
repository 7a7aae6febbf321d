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
    MeanWordVectors(vectors=TABLE, weighting="idf"),
    MeanWordVectors(vectors=TABLE, weighting="sif", remove_components=1),
    WordVectorCodebook(vectors=TABLE, n_words=3, cache=False),
    WordVectorCodebook(vectors=TABLE, n_words=3, clustered="texts", counts=True),
]


def by_name(encoder: WordVectorEncoder) -> str:
    return encoder.identity.replace(repr(TABLE), "TABLE")


@given(st.lists(st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6), min_size=1, max_size=5))
def test_a_plain_mean_is_the_mean_of_the_known_words(texts: list[list[str]]) -> None:
    found = MeanWordVectors(vectors=TABLE, stop_words=None).transform([" ".join(words) for words in texts])
    for row, words in zip(found, texts, strict=True):
        known = [TABLE[word] for word in words if word in TABLE]
        np.testing.assert_allclose(row, np.mean(known, axis=0) if known else np.zeros(4), atol=1e-6)


def test_idf_weights_by_hand() -> None:
    encoder = MeanWordVectors(vectors=TABLE, weighting="idf").fit(TEXTS)
    red, boat, unseen = 1 + np.log(7 / 4), 1 + np.log(7 / 2), 1 + np.log(7)
    expected = (2 * red * TABLE["red"] + boat * TABLE["boat"]) / (2 * red + boat)
    np.testing.assert_allclose(encoder.transform(["red boat, red"])[0], expected, rtol=1e-5)
    narrow = MeanWordVectors(vectors=TABLE, weighting="idf").fit(["red boat"] * 6)
    expected = ((1 + np.log(7 / 7)) * TABLE["red"] + unseen * TABLE["dog"]) / (1 + unseen)
    np.testing.assert_allclose(narrow.transform(["red dog"])[0], expected, rtol=1e-5)


def test_sif_by_hand() -> None:
    texts = TEXTS[:4]
    shares = {"red": 3, "boat": 1, "ship": 1, "cat": 1, "dog": 1, "grass": 2}
    weights = {word: 1e-3 / (1e-3 + count / 9) for word, count in shares.items()}
    rows = []
    for text in texts:
        words = [word for word in text.split() if word in shares]
        total = sum(weights[word] for word in words)
        rows.append(sum(weights[word] * TABLE[word].astype(np.float64) for word in words) / total)
    means = np.array(rows)
    direction = np.linalg.svd(means)[2][0]
    expected = means - np.outer(means @ direction, direction)
    found = MeanWordVectors(vectors=TABLE, weighting="sif", remove_components=1).fit_transform(texts)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found @ direction, 0, atol=1e-6)


def test_a_plain_mean_needs_no_fit_and_the_others_do() -> None:
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


@pytest.mark.parametrize("encoder", ENCODERS[1:], ids=by_name)
def test_another_table_is_refused(encoder: WordVectorEncoder) -> None:
    fitted = clone(encoder).fit(TEXTS)
    fitted.set_params(vectors=WordVectors(WORDS, TABLE.vectors + 1))
    with pytest.raises(InvalidInputError, match="not those this encoder was fitted with"):
        fitted.transform(TEXTS)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (MeanWordVectors(vectors=TABLE, weighting="bm25"), "weighting must be None, 'idf' or 'sif', got 'bm25'"),
        (MeanWordVectors(vectors=TABLE, remove_components=-1), "remove_components must be at least 0"),
        (MeanWordVectors(vectors=TABLE, weighting="idf", lemmas=True, stop_words="french"), "stop_words must be"),
        (WordVectorCodebook(vectors=TABLE, n_words=0), "n_words must be at least 1"),
        (WordVectorCodebook(vectors=TABLE, clustered="words"), "clustered must be 'table' or 'texts'"),
        (WordVectorCodebook(vectors=TABLE, n_words=5, table_words=4), "table_words must be at least n_words"),
        (MeanWordVectors(vectors="nowhere.bin", weighting="idf"), "nowhere.bin does not exist"),
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


def test_training_texts_without_a_known_word_are_an_error() -> None:
    for encoder in (ENCODERS[1], ENCODERS[4]):
        with pytest.raises(InvalidInputError, match="no word of the training texts has a vector"):
            clone(encoder).fit(["nothing known"])


def test_a_histogram_counts_the_nearest_centres() -> None:
    encoder = WordVectorCodebook(vectors=TABLE, n_words=3, cache=False).fit(TEXTS)
    distances = np.linalg.norm(TABLE.vectors[:, None] - encoder.centres_[None], axis=2)
    group = dict(zip(WORDS, distances.argmin(axis=1), strict=True))
    histograms = encoder.transform(TEXTS)
    for row, text in zip(histograms, TEXTS, strict=True):
        expected = np.zeros(3)
        for word in text.split():
            if word in group:
                expected[group[word]] += 1
        np.testing.assert_allclose(row, expected / max(1, expected.sum()), atol=1e-6)


def test_a_codebook_of_the_table_does_not_depend_on_the_texts_and_one_of_texts_does() -> None:
    table = WordVectors([f"word{row}" for row in range(200)], np.random.default_rng(1).normal(size=(200, 5)))
    texts = [f"word{row} word{row + 1}" for row in range(60)]
    for clustered, same in (("table", True), ("texts", False)):
        encoder = WordVectorCodebook(vectors=table, n_words=20, clustered=clustered, cache=False)
        first, second = clone(encoder).fit(texts), clone(encoder).fit(texts[:30])
        assert np.array_equal(first.centres_, second.centres_) == same
    narrow = WordVectorCodebook(vectors=table, n_words=20, table_words=20, cache=False).fit(texts)
    np.testing.assert_array_equal(narrow.centres_, table.vectors[:20])


def test_centres_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    encoder = WordVectorCodebook(vectors=TABLE, n_words=3)
    first = clone(encoder).fit(TEXTS)
    (kept,) = (tmp_path / "diptych" / "codebooks").iterdir()
    np.testing.assert_array_equal(clone(encoder).fit(TEXTS).centres_, first.centres_)
    np.testing.assert_array_equal(clone(encoder).set_params(cache=False).fit(TEXTS).centres_, first.centres_)
    assert clone(encoder).set_params(cache=False).identity == encoder.identity
    clone(encoder).set_params(random_state=1).fit(TEXTS)
    assert len(list(kept.parent.iterdir())) == 2
    kept.write_bytes(b"damaged")
    np.testing.assert_array_equal(clone(encoder).fit(TEXTS).centres_, first.centres_)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_nearest_centres_by_brute_force(seed: int, n_centres: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, centres = rng.normal(size=(30, 4)), rng.normal(size=(n_centres, 4))
    distances = ((vectors[:, None] - centres[None]) ** 2).sum(axis=2)
    found = np.take_along_axis(distances, nearest_centres(vectors, centres)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(found, distances.min(axis=1), atol=1e-12)


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
    for encoder in (
        MeanWordVectors(vectors="glove-50d", weighting="idf"),
        WordVectorCodebook(vectors="glove-50d", n_words=100, clustered="texts"),
    ):
        train, test = encoder.fit_transform(splits.train.texts), encoder.transform(splits.test.texts)
        centroids = {
            label: train[np.asarray(splits.train.labels) == label].mean(axis=0) for label in set(splits.train.labels)
        }
        names, points = list(centroids), np.array(list(centroids.values()))
        guesses = [names[row] for row in nearest_centres(test, points)]
        assert np.mean(np.asarray(guesses) == np.asarray(splits.test.labels)) > 0.5
