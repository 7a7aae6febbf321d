from __future__ import annotations

import json
from copy import copy
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych import Retriever, Space
from diptych.data import load_dataset
from diptych.encoders import ColourEdgeHistograms, SentenceEncoder, TfidfTopics
from diptych.errors import InvalidInputError
from diptych.models import (
    CCA,
    CFA,
    KCCA,
    SCM,
    SM,
    ContrastiveProjection,
    CrossModalModel,
    LinearRegression,
    MarginalSCM,
    MarginalSM,
    Preprocessed,
    QueryBankNormalized,
    Random,
    SharedSpace,
)
from diptych.retriever import Calibration, Explanation, Subject, View, explain, explanation_kind
from diptych.retriever.explaining.match import coordinate_contributions
from diptych.space import DIRECTIONS, SPACE_NAMES, Direction, on_one_scale

PAIRS = load_dataset("scenes", n_train=80, n_test=10, size=32).train
QUERY = "a red car in front of a house"
PICTURE = PAIRS.images[3]
CAPTION = "a blue boat on the water"

SEMANTIC: list[CrossModalModel] = [
    SM(C=0.3),
    SM(C=0.3, metric="cosine"),
    SM(C=0.3, metric="l1"),
    SM(C=0.3, metric="kl"),
    SM(C=0.3, metric="euclidean"),
    SCM(correlation=CCA(n_components=8), C=0.3),
    SCM(correlation=KCCA(n_components=5), C=0.3),
    MarginalSM(C=0.3),
    MarginalSCM(correlation=CCA(n_components=8), C=0.3),
    Preprocessed(model=MarginalSM(C=0.3), images="hellinger"),
]
LINEAR: list[CrossModalModel] = [
    CCA(n_components=8),
    CCA(n_components=8, metric="pearson"),
    CCA(n_components=8, metric="dot"),
    CCA(n_components=8, metric="covariance"),
    CFA(n_components=8),
    ContrastiveProjection(n_components=8, epochs=2),
    LinearRegression(),
    LinearRegression(target="texts"),
    Preprocessed(model=CCA(n_components=8), images="hellinger"),
    Preprocessed(model=CCA(n_components=8), images="l2", texts="l1", standardize=True),
    Preprocessed(model=CCA(n_components=8), images="none", image_components=20, text_components=15),
]
OTHERS: list[CrossModalModel] = [KCCA(n_components=5), CCA(n_components=8, metric="euclidean")]
SIDES = [(QUERY, PICTURE), (PICTURE, CAPTION), (PICTURE, PAIRS.images[5]), (QUERY, CAPTION)]


@cache
def encoded() -> tuple[Any, Any, Any]:
    """Return encoders and the features of all pairs, made once."""
    encoders = (
        ColourEdgeHistograms(size=32, levels=(1, 2)).fit(PAIRS.images),
        TfidfTopics(n_components=30).fit(PAIRS.texts),
    )
    features = encoders[0].transform(PAIRS.images), encoders[1].transform(list(PAIRS.texts))
    return (*encoders, PAIRS.with_features(images=features[0], texts=features[1]).aligned())


def fitted(model: CrossModalModel) -> Retriever:
    """Fit without the comparison and calibration that explanations do not look at."""
    retriever = Retriever(cache=False)
    retriever.image_encoder_, retriever.text_encoder_, rows = encoded()
    # Models are fitted once for all tests that share them.
    retriever.model_ = model if hasattr(model, "n_pairs_") else model.fit(*rows)
    return retriever


def score(retriever: Retriever, query: Any, answer: Any) -> float:
    def point(what: Any) -> Any:
        return retriever.encode_texts([what]) if isinstance(what, str) else retriever.encode_images([what])

    direction: Direction = "text_query" if isinstance(query, str) else "image_query"
    return float(retriever.space.compare(point(query), point(answer), direction)[0, 0])


def combined_score(retriever: Retriever, terms: list[Any], weights: list[float]) -> float:
    """Return what a search says: the unit vector along the weighted unit vectors, or the weighted mean of scores."""
    if retriever.space.name not in ("cosine", "pearson", "covariance", "dot"):
        each = [weight * score(retriever, term, PICTURE) for term, weight in zip(terms, weights, strict=True)]
        return sum(each) / sum(map(abs, weights))
    form = retriever.space.indexable()
    assert form is not None
    asked = [form.queries(Subject.of(retriever, term).point)[0].astype(np.float64) for term in terms]
    slopes = [retriever.score_slope(f"{Subject.of(retriever, term).side}_to_image") for term in terms]
    scaled = on_one_scale(np.array(weights), np.array(asked), slopes)
    whole = np.sum([w * u / np.linalg.norm(u) for w, u in zip(scaled, asked, strict=True)], axis=0)
    product = whole / np.linalg.norm(whole) @ form.gallery(Subject.of(retriever, PICTURE).point)[0]
    return float(product / (len(whole) if retriever.space.name == "covariance" else 1))


def view_of(explanation: Explanation, kind: str) -> View:
    return next(view for view in explanation.views if view.kind == kind)


def total(view: View) -> float:
    assert view.remainder is not None
    return sum(bar.contribution for bar in view.bars) + view.remainder


@given(
    st.sampled_from([name for name in SPACE_NAMES if name not in ("hamming", "corrected")]),
    st.sampled_from(DIRECTIONS),
    st.integers(0, 10_000),
)
def test_coordinates_sum_to_the_score_in_every_space(name: str, direction: Direction, seed: int) -> None:
    query, answer = np.random.default_rng(seed).dirichlet(np.ones(7), size=2)[:, None, :]
    added = coordinate_contributions(Space(name), query, answer, direction)
    assert added.sum() == pytest.approx(Space(name).compare(query, answer, direction)[0, 0], abs=1e-9)


def test_a_constant_point_correlates_with_nothing() -> None:
    constant, other = np.full((1, 5), 0.3), np.arange(5.0)[None]
    assert not coordinate_contributions(Space("pearson"), constant, other, "text_query").any()


@pytest.mark.parametrize("model", SEMANTIC, ids=str)
@pytest.mark.parametrize(("query", "answer"), SIDES, ids=["text-image", "image-text", "image-image", "text-text"])
def test_semantic_models_show_both_class_vectors(model: CrossModalModel, query: Any, answer: Any) -> None:
    retriever = fitted(model)
    explanation = explain(retriever, query, answer)
    view = explanation.views[0]
    assert explanation.kind == explanation_kind(model) == "classes"
    assert total(view) == pytest.approx(score(retriever, query, answer), abs=1e-5)
    point = Subject.of(retriever, query).point[0]
    names = [str(name) for name in getattr(model, "model_", model).classes_]
    for bar in view.bars:
        assert bar.query == pytest.approx(point[names.index(bar.name)])


def test_the_class_that_both_show_is_named() -> None:
    retriever = fitted(SEMANTIC[0])
    text = retriever.encode_texts(list(PAIRS.texts))
    images = retriever.encode_images(PAIRS.images)
    row = int(np.argmax(images.max(axis=1)))
    best = int(images[row].argmax())
    words = PAIRS.texts[int(text[:, best].argmax())]
    summary = explain(retriever, words, PAIRS.images[row]).summary
    assert summary.startswith(f"Both the query and the picture look most like {retriever.model_.classes_[best]} (")


def test_names_of_classes_may_be_given() -> None:
    retriever = fitted(SEMANTIC[0])
    names = [f"kind {row}" for row in range(len(retriever.model_.classes_))]
    assert explain(retriever, QUERY, PICTURE, class_names=names).bars[0].name.startswith("kind ")
    with pytest.raises(InvalidInputError, match="one name for each"):
        explain(retriever, QUERY, PICTURE, class_names=["one"])


@pytest.mark.parametrize("model", [*LINEAR, *OTHERS], ids=str)
def test_a_word_counts_what_the_score_loses_without_it(model: CrossModalModel) -> None:
    retriever = fitted(model)
    explanation = explain(retriever, "a red car, shining", PICTURE)
    assert explanation.kind == explanation_kind(model) == "words"
    assert [bar.name for bar in explanation.bars] == ["a", "red", "car", "shining"]
    without = {"a": "red car, shining", "red": "a car, shining", "car": "a red , shining", "shining": "a red car,"}
    whole = score(retriever, "a red car, shining", PICTURE)
    for bar in explanation.bars:
        loss = whole - score(retriever, without[bar.name], PICTURE)
        assert bar.contribution == pytest.approx(loss, abs=1e-5)


def test_an_only_word_brings_the_whole_score_and_no_word_none() -> None:
    retriever = fitted(LINEAR[0])
    (bar,) = explain(retriever, "car", PICTURE).bars
    assert bar.contribution == pytest.approx(score(retriever, "car", PICTURE))
    assert explain(retriever, "!?", PICTURE).kind == "none"


def test_long_texts_are_looked_at_in_part_and_say_so() -> None:
    words = " ".join(f"the word{number}" for number in range(40))
    explanation = explain(fitted(LINEAR[0]), words, PICTURE)
    assert [bar.name for bar in explanation.bars] == [f"word{number}" for number in range(20)]
    assert "60 words" in explanation.note


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("model", [*LINEAR[:5], SEMANTIC[2], SEMANTIC[7], OTHERS[1]], ids=str)
def test_terms_of_a_combined_query_sum_to_its_score(model: CrossModalModel, calibrated: bool) -> None:
    retriever, weights = fitted(model), [2.0, 0.5, -1.0]
    if calibrated:
        retriever.calibration_ = Calibration.assumed(1.0, 0.0)
        retriever.calibration_.slopes_ = np.array([20.0, 20.0, 7.0, 14.0])
    terms = [QUERY, PAIRS.images[7], "snow and a house"]
    explanation = explain(retriever, terms, PICTURE, weights=weights)
    searched = combined_score(retriever, terms, weights)
    assert explanation.score == pytest.approx(searched, abs=1e-4)
    assert sum(term.contribution for term in explanation.terms) == pytest.approx(searched, abs=1e-4)
    for view in explanation.views:
        if view.additive and len({bar.term for bar in view.bars}) == 3:
            assert total(view) == pytest.approx(searched, abs=1e-4)
    assert explanation.summary.startswith("Of the score ")


def test_a_single_unwanted_term_counts_against() -> None:
    retriever = fitted(LINEAR[0])
    wanted = explain(retriever, QUERY, PICTURE)
    unwanted = explain(retriever, [QUERY], PICTURE, weights=[-2])
    assert unwanted.score == pytest.approx(-wanted.score)
    assert [bar.contribution for bar in unwanted.bars] == pytest.approx([-bar.contribution for bar in wanted.bars])


def test_random_points_have_no_reason() -> None:
    retriever = fitted(Random())
    explanation = explain(retriever, QUERY, PICTURE)
    assert (explanation.kind, explanation.bars, explanation_kind(Random())) == ("none", (), "none")
    assert "no names" in explanation.summary


def test_a_point_alone_is_explained_by_words() -> None:
    retriever = fitted(LINEAR[0])
    subject = Subject.of_image_point(retriever.encode_images([PICTURE]))
    assert [view.kind for view in explain(retriever, QUERY, subject).views] == ["words"]
    assert explain(retriever, QUERY, subject).bars == explain(retriever, QUERY, PICTURE).bars


def test_explanations_are_plain_values() -> None:
    for retriever in (fitted(SEMANTIC[0]), fitted(LINEAR[0])):
        document = asdict(explain(retriever, QUERY, PICTURE))
        assert json.loads(json.dumps(document))["score"] == document["score"]


def test_networks_with_a_classifier_tell_what_they_see() -> None:
    retriever = Retriever.default()
    retriever.cache = False
    explanation = explain(retriever, QUERY, PICTURE)
    seen = view_of(explanation, "labels")
    assert all(0 <= (bar.answer or 0) <= 1 for bar in seen.bars)
    near = retriever.space.compare(retriever.encode_texts([seen.bars[0].name]), retriever.encode_texts([QUERY]))
    assert seen.bars[0].query == pytest.approx(float(near[0, 0]), abs=1e-4)
    assert explain(retriever, PICTURE, PAIRS.images[5]).kind == "labels"


def test_conse_tells_the_labels_that_it_mixes() -> None:
    retriever = Retriever.conse()
    retriever.cache = False
    seen = view_of(explain(retriever, QUERY, PICTURE), "labels")
    probabilities = sorted(retriever.image_features([PICTURE])[0], reverse=True)
    assert sorted((bar.answer or 0 for bar in seen.bars), reverse=True) == pytest.approx(
        probabilities[: len(seen.bars)]
    )


def test_what_a_bank_takes_off_is_told() -> None:
    inner = fitted(CCA(n_components=4))
    retriever = copy(inner)
    features = inner.image_features(PAIRS.images), inner.text_features(list(PAIRS.texts))
    retriever.model_ = QueryBankNormalized.of(inner.model_, *features)
    picture = Subject.of_picture(retriever, PICTURE)
    note = view_of(explain(retriever, QUERY, picture), "words").note
    assert f"{float(picture.point[0, -2]):.3f} was taken off" in note
    assert "ordinary texts" in note
    assert "taken off" not in view_of(explain(retriever, QUERY, "a red car"), "words").note
    assert "taken off" not in view_of(explain(inner, QUERY, PICTURE), "words").note


def test_features_that_share_a_space_are_explained_by_words() -> None:
    retriever = Retriever(cache=False)
    retriever.text_encoder_ = SentenceEncoder()
    retriever.model_ = SharedSpace().fit(np.ones((1, 384)), np.ones((1, 384)))
    explanation = explain(retriever, "a dog", "a dog on the beach")
    assert [view.title for view in explanation.views] == ["Words of the query", "Words of the text"]


@pytest.mark.parametrize(
    ("query", "weights", "message"),
    [
        ([], None, "empty"),
        (["a", "b"], [1.0], "one weight"),
        (["a"], [0.0], "other than 0"),
        (["a"], [np.nan], "other"),
    ],
)
def test_a_query_that_asks_nothing_is_refused(query: Any, weights: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        explain(fitted(CCA(n_components=4)), query, PICTURE, weights=weights)


def test_other_sources_of_points_cannot_be_explained() -> None:
    source: Any = object()
    with pytest.raises(InvalidInputError, match="cannot be explained"):
        explain(source, QUERY, PICTURE)
    assert explanation_kind(source) == "none"
