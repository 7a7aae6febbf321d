from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from diptych.data import load_dataset
from diptych.encoders import Encoder, LdaTopics, Tfidf, TfidfTopics
from diptych.errors import InvalidInputError

ENCODERS = [
    Tfidf(max_words=20),
    TfidfTopics(n_components=8),
    TfidfTopics(n_components=8, stop_words="pictures", lemmas=True),
    LdaTopics(n_topics=6, max_iter=5),
]


@pytest.fixture(scope="module")
def captions() -> list[str]:
    return list(load_dataset("scenes", n_train=60, n_test=1, size=32).train.texts)


def test_weights_and_directions_are_those_of_scikit_learn(captions: list[str]) -> None:
    reference = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2)
    matrix = reference.fit_transform(captions)
    encoder = TfidfTopics(n_components=10).fit(captions)
    assert encoder.vocabulary_ == tuple(reference.get_feature_names_out())
    np.testing.assert_allclose(encoder.idf_, reference.idf_)
    expected = TruncatedSVD(10, algorithm="arpack", random_state=0).fit_transform(matrix)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    # Captions of rare words alone lie outside all ten directions: what is left of them is rounding.
    inside = lengths[:, 0] > 1e-6
    assert inside.mean() > 0.9
    expected = (expected / lengths)[inside]
    found = encoder.transform(captions)[inside]
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-5)


def test_plain_tfidf_is_that_of_scikit_learn_on_the_commonest_words(captions: list[str]) -> None:
    encoder = Tfidf(max_words=30).fit(captions)
    reference = TfidfVectorizer(sublinear_tf=True, vocabulary=encoder.vocabulary_).fit(captions)
    np.testing.assert_allclose(encoder.transform(captions), reference.transform(captions).toarray(), atol=1e-6)
    everything = Tfidf(max_words=10_000).fit(captions)
    assert len(encoder.vocabulary_) == 30 < len(everything.vocabulary_)
    assert (
        dict(zip(everything.vocabulary_, everything.idf_, strict=True)).items()
        >= dict(zip(encoder.vocabulary_, encoder.idf_, strict=True)).items()
    )
    assert max(encoder.idf_) <= min(set(everything.idf_) - set(encoder.idf_), default=np.inf)


def test_all_directions_keep_every_angle() -> None:
    texts = ["red boat", "red house", "blue boat", "blue sky tonight", "red red sky"]
    matrix = TfidfVectorizer(sublinear_tf=True).fit_transform(texts).toarray()
    found = TfidfTopics(n_components=100, min_documents=1, stop_words=None).fit_transform(texts)
    assert found.shape == (5, 5)
    np.testing.assert_allclose(found @ found.T, matrix @ matrix.T, atol=1e-6)


def test_repeated_texts_do_not_invent_directions() -> None:
    assert TfidfTopics(min_documents=1).fit_transform(["red boat"] * 3 + ["green house"] * 2).shape == (5, 2)


def test_text_without_a_known_word(captions: list[str]) -> None:
    assert not TfidfTopics(n_components=5).fit(captions).transform(["zyzzyva", ""]).any()
    assert not Tfidf().fit(captions).transform(["zyzzyva", ""]).any()
    np.testing.assert_allclose(LdaTopics(n_topics=4, max_iter=3).fit(captions).transform(["zyzzyva"]), 0.25)


def test_topic_proportions_are_a_distribution_and_separate_vocabularies() -> None:
    texts = ["boat sea wave ship sail"] * 10 + ["goal ball team match player"] * 10
    proportions = LdaTopics(n_topics=2).fit_transform(texts)
    np.testing.assert_allclose(proportions.sum(axis=1), 1)
    assert (proportions >= 0).all()
    winners = proportions.argmax(axis=1)
    assert len(set(winners[:10])) == len(set(winners[10:])) == 1
    assert winners[0] != winners[10]


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: encoder.identity)
def test_manners(encoder: Encoder, captions: list[str]) -> None:
    copy = clone(encoder)
    assert copy.identity == encoder.identity
    with pytest.raises(NotFittedError):
        copy.transform(captions)
    features = copy.fit(captions).transform(captions)
    assert np.isfinite(features).all()
    assert features.shape[0] == len(captions)
    for row in (0, 17):
        np.testing.assert_allclose(copy.transform([captions[row]])[0], features[row], atol=1e-6)
    np.testing.assert_array_equal(clone(encoder).fit(captions).transform(captions), features)
    fitted = {name for name in vars(copy) if name not in copy.get_params()}
    assert fitted
    assert all(name.endswith("_") for name in fitted)


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: encoder.identity)
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one string", "pass it in a list"),
        ([], "no texts"),
        (["a", 3], "text 1 is a int"),
        (["the and of"], "no word is left"),
    ],
)
def test_bad_texts_are_named(encoder: Encoder, texts: list[str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        clone(encoder).fit(texts)


@pytest.mark.parametrize(
    "encoder",
    [
        Tfidf(max_words=0),
        TfidfTopics(n_components=0),
        TfidfTopics(min_documents=0),
        LdaTopics(n_topics=0),
        LdaTopics(max_iter=0),
    ],
)
def test_parameters_are_checked(encoder: Encoder) -> None:
    with pytest.raises(InvalidInputError, match="must be at least 1"):
        encoder.fit(["red boat", "red house"])


def test_captions_of_scenes_tell_the_class() -> None:
    splits = load_dataset("scenes", n_train=300, n_test=100, size=32, captions="join")
    encoder = TfidfTopics().fit(splits.train.texts)
    classifier = LogisticRegression(C=10, max_iter=300).fit(encoder.transform(splits.train.texts), splits.train.labels)
    assert classifier.score(encoder.transform(splits.test.texts), splits.test.labels) > 0.5
