"""Every measure equals its average over all orders of tied items."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.metrics import (
    AP,
    CMC,
    NDCG,
    CMCCurve,
    GradedRelevance,
    MeanRank,
    Measure,
    Precision,
    PrecisionRecallCurve,
    PrecisionScope,
    RankedGroups,
    Recall,
    RecallAtK,
    SameLabel,
    evaluate_scores,
)
from diptych.metrics.measure import hypergeometric, miss_probability
from diptych.metrics.precision_recall import reciprocal_sum
from tests.metrics.enumerated_orders import average_precision, expectation, first_rank, gain, orders, precision, recall


@st.composite
def rankings(draw, top_grade=1):
    """A gallery of up to 6 items on 3 score values, with at least one relevant item."""
    n_items = draw(st.integers(1, 6))
    scores = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=n_items, max_size=n_items))
    grades = draw(
        st.lists(st.integers(0, top_grade), min_size=n_items, max_size=n_items).filter(lambda values: any(values))
    )
    return scores, grades


def measured(measure: Measure, scores, grades) -> float:
    return evaluate_scores([scores], GradedRelevance([grades]), [measure])[measure]


cutoffs = st.integers(1, 8)


@settings(max_examples=60, deadline=None)
@given(rankings(), st.none() | cutoffs, st.sampled_from(["total", "retrieved", "min"]))
def test_average_precision(ranking, cutoff, denominator):
    expected = expectation(lambda order: average_precision(order, cutoff, denominator), *ranking)
    assert measured(AP(cutoff, denominator), *ranking) == pytest.approx(expected, abs=1e-13)


@settings(max_examples=40, deadline=None)
@given(rankings(top_grade=3), cutoffs)
def test_binary_measures_take_every_positive_grade(ranking, cutoff):
    for measure, definition in (
        (AP(cutoff, "retrieved"), lambda order: average_precision(order, cutoff, "retrieved")),
        (Precision(cutoff), lambda order: precision(order, cutoff)),
        (Recall(cutoff), lambda order: recall(order, cutoff)),
        (CMC(cutoff), lambda order: first_rank(order) <= cutoff),
        (RecallAtK(cutoff), lambda order: first_rank(order) <= cutoff),
        (MeanRank(), first_rank),
    ):
        assert measured(measure, *ranking) == pytest.approx(expectation(definition, *ranking), abs=1e-13)


@settings(max_examples=50, deadline=None)
@given(rankings(top_grade=3), cutoffs)
def test_discounted_gain(ranking, cutoff):
    _, grades = ranking
    reached = expectation(lambda order: gain(order, cutoff), *ranking)
    ideal = gain(sorted(grades, reverse=True), cutoff)
    fixed = gain([3.0] * cutoff, cutoff)
    assert measured(NDCG(cutoff, "ideal"), *ranking) == pytest.approx(reached / ideal, abs=1e-13)
    assert measured(NDCG(cutoff, "fixed"), *ranking) == pytest.approx(reached / fixed, abs=1e-13)
    whole = expectation(lambda order: gain(order, None), *ranking) / gain(sorted(grades, reverse=True), None)
    assert measured(NDCG(None, "ideal"), *ranking) == pytest.approx(whole, abs=1e-13)


@settings(max_examples=60, deadline=None)
@given(st.lists(rankings(), min_size=1, max_size=3).filter(lambda many: len({len(s) for s, _ in many}) == 1))
def test_curves_are_exact_at_every_scope(many):
    scores, grades = [list(part) for part in zip(*many, strict=True)]
    n_items = len(scores[0])
    scopes = range(1, n_items + 1)
    curves = [CMCCurve(), PrecisionRecallCurve(), PrecisionScope(tuple(scopes))]
    result = evaluate_scores(scores, GradedRelevance(grades), curves)

    def mean(definition):
        return [np.mean([expectation(lambda order, k=k: definition(order, k), *one) for one in many]) for k in scopes]

    np.testing.assert_allclose(result[curves[0]].y, mean(lambda order, k: first_rank(order) <= k), atol=1e-13)
    np.testing.assert_allclose(result[curves[1]].x, mean(recall), atol=1e-13)
    np.testing.assert_allclose(result[curves[1]].y, mean(precision), atol=1e-13)
    np.testing.assert_allclose(result[curves[2]].y, mean(precision), atol=1e-13)


@settings(max_examples=40, deadline=None)
@given(rankings(top_grade=3))
def test_tie_policies_bracket_the_expectation(ranking):
    scores, grades = ranking
    measures = [AP(), AP(3), AP(3, "min"), Precision(2), Recall(2), CMC(2), NDCG(3), NDCG(3, "ideal")]
    by_policy = {
        ties: evaluate_scores([scores], GradedRelevance([grades]), [*measures, MeanRank()], ties=ties)
        for ties in ("optimistic", "expected", "random", "pessimistic")
    }
    for measure in measures:
        low, high = by_policy["pessimistic"][measure], by_policy["optimistic"][measure]
        assert low - 1e-13 <= by_policy["expected"][measure] <= high + 1e-13
        assert low - 1e-13 <= by_policy["random"][measure] <= high + 1e-13
    assert by_policy["optimistic"][MeanRank()] <= by_policy["expected"][MeanRank()] + 1e-13
    assert by_policy["expected"][MeanRank()] <= by_policy["pessimistic"][MeanRank()] + 1e-13


@settings(max_examples=60, deadline=None)
@given(rankings(top_grade=3))
def test_best_and_worst_orders_are_reached(ranking):
    scores, grades = ranking
    gains = [gain(order, 3) / gain(sorted(grades, reverse=True), 3) for order in orders(scores, grades)]
    precisions = [average_precision(order, 3, "total") for order in orders(scores, grades)]
    for ties, pick in (("optimistic", max), ("pessimistic", min)):
        result = evaluate_scores([scores], GradedRelevance([grades]), [NDCG(3, "ideal"), AP(3)], ties=ties)
        assert result[NDCG(3, "ideal")] == pytest.approx(pick(gains), abs=1e-13)
        assert result[AP(3)] == pytest.approx(pick(precisions), abs=1e-13)


def test_random_ties_average_to_the_expectation():
    scores = [0.5, 0.5, 0.5, 0.5, 0.2, 0.2, 0.2]
    grades = [3, 1, 0, 0, 1, 0, 0]
    n_queries = 1500
    relevance = GradedRelevance([grades] * n_queries)
    measures = [AP(), AP(3, "retrieved"), CMC(1), NDCG(3, "ideal"), MeanRank()]
    tied = np.tile(scores, (n_queries, 1))
    expected = evaluate_scores(tied, relevance, measures)
    drawn = evaluate_scores(tied, relevance, measures, ties="random", seed=1)
    for measure in measures:
        spread = drawn.values[measure].std() / np.sqrt(n_queries)
        assert abs(drawn[measure] - expected[measure]) < 4 * spread
        assert spread > 0


def test_random_ties_are_seeded():
    scores = np.zeros((20, 30))
    relevance = SameLabel(np.arange(20) % 3, np.arange(30) % 3)
    values = [evaluate_scores(scores, relevance, [AP()], ties="random", seed=seed).values[AP()] for seed in (0, 0, 1)]
    np.testing.assert_array_equal(values[0], values[1])
    assert (values[0] != values[2]).any()
    assert len(np.unique(values[0])) > 10


@pytest.mark.parametrize(("before", "count"), [(0, 2), (3, 5), (63, 2), (64, 2), (1000, 3), (10**6, 7), (10**6, 10**5)])
def test_reciprocal_sums_keep_their_digits(before, count):
    exact = math.fsum(1 / (before + j) for j in range(1, count + 1))
    value = reciprocal_sum(np.array([before]), np.array([count]))[0]
    assert value == pytest.approx(exact, rel=1e-13)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 400), st.data())
def test_hypergeometric_against_binomial_coefficients(size, data):
    relevant, drawn = data.draw(st.integers(0, size)), data.draw(st.integers(1, size))
    found, probability = hypergeometric(size, relevant, drawn)
    ways = [math.comb(relevant, int(m)) * math.comb(size - relevant, drawn - int(m)) for m in found]
    np.testing.assert_allclose(probability, [way / math.comb(size, drawn) for way in ways], rtol=1e-10, atol=1e-300)
    missed = math.comb(size - relevant, drawn) / math.comb(size, drawn)
    assert miss_probability(size, relevant, drawn) == pytest.approx(missed, rel=1e-12, abs=1e-300)


def test_retrieved_denominator_in_a_large_group():
    groups = RankedGroups.all_tied([[1000]], [100_000])
    found, probability = hypergeometric(100_000, 1000, 50)
    rng = np.random.default_rng(0)
    draws = rng.random((20_000, 50)) < 0.01
    hits = np.cumsum(draws, axis=1)
    simulated = np.where(draws, hits / np.arange(1, 51), 0).sum(axis=1) / np.maximum(hits[:, -1], 1)
    value = AP(50, "retrieved").compute(groups)[0]
    assert abs(value - simulated.mean()) < 5 * simulated.std() / np.sqrt(20_000)
    assert probability.sum() == pytest.approx(1.0)
    assert found @ probability == pytest.approx(0.5)
