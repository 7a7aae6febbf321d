"""Fusion of scores: by given weights, and by weights that coordinate ascent finds, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from diptych.errors import InvalidInputError
from diptych.metrics import AP, CMC, NDCG, GradedRelevance, MeanRank, Precision, Recall, RecallAtK, evaluate_scores
from diptych.models import CoordinateAscent, fuse_scores
from diptych.models.fusion._ranked_lists import RankedLists


def test_sigmoid_fusion_is_the_published_sum():
    first, second = np.array([[0.5, -1.0]]), np.array([[2.0, 0.0]])
    expected = 0.3 / (1 + np.exp(-first)) + 0.7 / (1 + np.exp(-second))
    np.testing.assert_allclose(fuse_scores([first, second], weights=[0.3, 0.7]), expected, atol=1e-12)


@given(st.floats(0.1, 100), st.floats(-50, 50))
def test_z_scores_forget_scale_and_offset(scale, offset):
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 3, 7))
    plain = fuse_scores([first, second], rescale="zscore")
    np.testing.assert_allclose(fuse_scores([scale * first + offset, second], rescale="zscore"), plain, atol=1e-8)


def test_one_model_keeps_its_order_whatever_the_rescaling():
    scores = np.random.default_rng(0).normal(size=9)
    for rescale in ("sigmoid", "zscore", "zscore_sigmoid", "none"):
        np.testing.assert_array_equal(np.argsort(fuse_scores([scores], rescale=rescale)), np.argsort(scores))


def test_huge_and_constant_scores_stay_finite():
    fused = fuse_scores([[1e300, -1e300], [5.0, 5.0]])
    assert fused.tolist() == pytest.approx([0.5 + 0.5 / (1 + np.exp(-5)), 0.5 / (1 + np.exp(-5))])
    assert fuse_scores([[5.0, 5.0]], rescale="zscore").tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([], {}, "no scores"),
        ([[1.0], [1.0, 2.0]], {}, "shapes"),
        ([[np.nan]], {}, "NaN"),
        ([[1.0]], {"weights": "learned"}, "'average'"),
        ([[1.0]], {"weights": [1.0, 2.0]}, "one weight"),
        ([[1.0]], {"weights": [0.0]}, "other than 0"),
        ([[1.0]], {"rescale": "rank"}, "rescale"),
    ],
)
def test_what_cannot_be_fused_gets_one_clear_error(scores, options, message):
    with pytest.raises(InvalidInputError, match=message):
        fuse_scores(scores, **options)


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="must be numbers"):
        fuse_scores([["a", "b"]])


def judged_lists(n_queries=15, n_parts=2, seed=0, longest=20, quality=(1.0, 0.5, 0.2)):
    """Lists of different lengths, whose parts know the grades more or less well."""
    rng = np.random.default_rng(seed)
    grades = [rng.choice([0, 0, 2, 3], int(rng.integers(6, longest + 1))) for _ in range(n_queries)]
    scores = [
        np.stack([part * wanted + rng.normal(size=len(wanted)) for part in quality[:n_parts]]) for wanted in grades
    ]
    return scores, grades


def brute_value(weights, scores, grades, measure):
    """The measure of each list on its own, by the evaluator of whole matrices."""
    values = [
        evaluate_scores([np.asarray(weights) @ parts], GradedRelevance([wanted]), [measure]).values[measure][0]
        for parts, wanted in zip(scores, grades, strict=True)
        if (np.asarray(wanted) > 0).any()
    ]
    return measure.aggregate(np.array(values))


@pytest.mark.parametrize("measure", [AP(), NDCG(5), NDCG(None, "ideal"), Recall(3), Precision(4), RecallAtK(1), CMC(2)])
def test_lists_are_measured_as_the_evaluator_measures_each_alone(measure):
    scores, grades = judged_lists(longest=40)
    lists = RankedLists.of(scores, grades)
    for weights in ([1.0, 0.0], [0.3, 0.7], [0.5, -0.5]):
        value = lists.value(lists.fused(weights), measure)
        assert value == pytest.approx(brute_value(weights, scores, grades, measure), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_ties_are_measured_exactly(seed):
    rng = np.random.default_rng(seed)
    grades = [rng.integers(0, 3, size) for size in rng.integers(2, 9, 4)]
    grades[0][0] = 1
    scores = [rng.integers(0, 3, (2, len(wanted))).astype(float) for wanted in grades]
    lists = RankedLists.of(scores, grades)
    value = lists.value(lists.fused([1.0, 1.0]), AP())
    assert value == pytest.approx(brute_value([1.0, 1.0], scores, grades, AP()), abs=1e-12)


def test_moving_one_weight_is_adding_its_part():
    lists = RankedLists.of(*judged_lists(n_parts=3))
    moved = lists.moved(lists.fused([0.2, 0.3, 0.5]), 1, 0.4)
    for left, right in zip(moved, lists.fused([0.2, 0.7, 0.5]), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-12)


@pytest.mark.parametrize("measure", [AP(), NDCG(5, "ideal")])
@pytest.mark.parametrize("n_parts", [2, 3])
def test_no_point_of_a_grid_is_much_better(measure, n_parts):
    scores, grades = judged_lists(n_parts=n_parts)
    ascent = CoordinateAscent(
        measure=measure, tolerance=1e-4, starts="random", restarts=2 if n_parts == 3 else 1, trials=16
    ).fit(scores, grades)
    lists = RankedLists.of(scores, grades)
    steps = np.linspace(0, 1, 41 if n_parts == 2 else 11)
    grid = [w for w in np.stack(np.meshgrid(*[steps] * n_parts), -1).reshape(-1, n_parts) if abs(w.sum() - 1) < 1e-9]
    best = max(lists.value(lists.fused(weights), measure) for weights in grid)
    assert ascent.value_ >= best - 0.004
    assert ascent.value_ >= ascent.average_value_
    assert ascent.value_ == pytest.approx(brute_value(ascent.weights_, scores, grades, measure), abs=1e-9)
    assert np.abs(ascent.weights_).sum() == pytest.approx(1)
    assert (ascent.weights_ >= 0).all()


def test_scale_of_all_scores_does_not_matter():
    scores, grades = judged_lists(n_parts=3)
    first = CoordinateAscent(measure=AP(), restarts=1).fit(scores, grades)
    second = CoordinateAscent(measure=AP(), restarts=1).fit([1024 * parts for parts in scores], grades)
    np.testing.assert_array_equal(first.weights_, second.weights_)


def test_a_useless_part_gets_little_and_a_perfect_one_nearly_all():
    rng = np.random.default_rng(1)
    grades = [rng.integers(0, 2, 30) for _ in range(30)]
    scores = [np.stack([wanted + 0.1 * rng.normal(size=30), 3 * rng.normal(size=30)]) for wanted in grades]
    ascent = CoordinateAscent(measure=AP()).fit(scores, grades)
    assert ascent.value_ == pytest.approx(1)
    assert ascent.weights_[0] > 0.9


def test_a_part_that_is_upside_down_counts_against_only_if_allowed():
    rng = np.random.default_rng(2)
    grades = [rng.integers(0, 2, 15) for _ in range(12)]
    scores = [np.stack([rng.normal(size=15), rng.normal(size=15) - 3 * wanted]) for wanted in grades]
    careful = CoordinateAscent(measure=AP()).fit(scores, grades)
    free = CoordinateAscent(measure=AP(), negative=True).fit(scores, grades)
    assert 0 <= careful.weights_[1] < 0.05
    assert free.weights_[1] < -0.5
    assert free.value_ > careful.value_ + 0.1


def test_ranks_are_made_small():
    rng = np.random.default_rng(3)
    grades = [np.eye(30)[rng.integers(30)] for _ in range(20)]
    # The first part knows the one right item, the second, as loud as it is useless, hides it.
    scores = [np.stack([wanted + 0.1 * rng.normal(size=30), 3 * rng.normal(size=30)]) for wanted in grades]
    ascent = CoordinateAscent(measure=MeanRank()).fit(scores, grades)
    assert ascent.value_ < ascent.average_value_ - 1
    assert ascent.value_ == pytest.approx(brute_value(ascent.weights_, scores, grades, MeanRank()))


def test_equal_parts_keep_equal_weights_and_one_part_is_itself():
    scores, grades = judged_lists(n_parts=1)
    twice = CoordinateAscent(measure=AP()).fit([np.repeat(parts, 2, axis=0) for parts in scores], grades)
    assert twice.weights_.tolist() == [0.5, 0.5]
    assert CoordinateAscent(measure=AP()).fit(scores, grades).weights_.tolist() == [1.0]


def test_queries_without_relevant_candidates_change_nothing():
    scores, grades = judged_lists(n_queries=10)
    more = [*scores, np.ones((2, 4))], [*grades, np.zeros(4)]
    first, second = (CoordinateAscent(measure=AP()).fit(*given) for given in ((scores, grades), more))
    assert first.value_ == second.value_


def test_searches_are_seeded_and_reported():
    scores, grades = judged_lists(n_parts=3)
    reports = []
    ascent = CoordinateAscent(measure=AP(), restarts=2, trials=10, starts="random", random_state=3)
    first = ascent.fit(scores, grades, progress=reports.append)
    assert {report.restart for report in reports} == {1, 2}
    assert max(report.value for report in reports) == pytest.approx(first.value_)
    for report in reports:
        assert sum(abs(weight) for weight in report.weights) == pytest.approx(1)
    np.testing.assert_array_equal(clone(ascent).fit(scores, grades).weights_, first.weights_)


@pytest.mark.parametrize(
    ("scores", "grades", "message"),
    [
        ([], [], "one matrix"),
        ([np.ones((2, 3))], [np.ones(2)], "query 0 has scores"),
        ([np.ones((2, 3)), np.ones((3, 3))], [np.ones(3), np.ones(3)], "3 parts"),
        ([np.full((2, 3), np.nan)], [np.ones(3)], "not finite"),
        ([np.ones((2, 3))], [np.zeros(3)], "no candidate"),
    ],
)
def test_lists_that_cannot_be_used_get_one_clear_error(scores, grades, message):
    with pytest.raises(InvalidInputError, match=message):
        CoordinateAscent(measure=AP()).fit(scores, grades)


@pytest.mark.parametrize(
    "wrong", [{"measure": "map"}, {"restarts": 0}, {"trials": 0}, {"tolerance": -1}, {"starts": "anywhere"}]
)
def test_parameters_are_checked(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        CoordinateAscent(**wrong).fit(*judged_lists(n_queries=3))


def test_grades_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="must be numbers"):
        CoordinateAscent().fit([np.ones((2, 3))], [["good", "bad", "bad"]])
