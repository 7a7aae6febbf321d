"""Conventions of single measures and curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from diptych.errors import InvalidInputError
from diptych.metrics import (
    AP,
    CMC,
    FOSCTTM,
    NDCG,
    GradedRelevance,
    InterpolatedPrecisionRecall,
    MeanRank,
    MedianRank,
    Precision,
    PrecisionRecallCurve,
    PrecisionScope,
    Recall,
    RecallAtK,
    SameLabel,
    evaluate_scores,
)
from diptych.metrics.interpolated_precision import _expected_best, _sampled_best, _TieGroup
from tests.metrics.enumerated_orders import interpolated, orders


def test_the_representation_is_the_identity():
    measure = AP(cutoff=50, denominator="retrieved")
    assert eval(repr(measure)) == measure
    assert {measure: 1}[AP(50, "retrieved")] == 1
    assert measure != AP(50)


def test_labels_name_the_convention():
    measures = [AP(), AP(50, "retrieved"), Precision(5), Recall(5), CMC(1), RecallAtK(10), NDCG(), NDCG(None, "ideal")]
    labels = [measure.label for measure in measures]
    assert labels == [
        "MAP",
        "MAP@50 (retrieved)",
        "P@5",
        "recall@5 (share)",
        "CMC@1",
        "R@10",
        "NDCG@25 (fixed)",
        "NDCG (ideal)",
    ]


def test_denominators_differ_under_a_cutoff_and_agree_without():
    relevance = SameLabel([1], [1, 0, 1, 1, 1])
    scores = [[5, 4, 3, 2, 1]]
    measures = [AP(2, "total"), AP(2, "retrieved"), AP(2, "min")]
    assert list(evaluate_scores(scores, relevance, measures).mean.values()) == [0.25, 1.0, 0.5]
    whole = [AP(None, denominator) for denominator in ("total", "retrieved", "min")]
    total, *others = evaluate_scores(scores, relevance, whole).mean.values()
    assert others == pytest.approx([total] * 2)


def test_no_hit_among_the_retrieved_scores_zero():
    result = evaluate_scores([[3, 2, 1]], SameLabel([1], [0, 0, 1]), [AP(2, "retrieved")])
    assert result[AP(2, "retrieved")] == 0.0


@pytest.mark.parametrize("make", [AP, Precision, Recall, CMC, RecallAtK, lambda k: NDCG(k, "ideal")])
def test_a_cutoff_beyond_the_gallery_means_all_of_it(make):
    scores, relevance = [[3, 2, 1, 0]], SameLabel([1], [0, 1, 0, 1])
    assert evaluate_scores(scores, relevance, [make(100)])[make(100)] == pytest.approx(
        evaluate_scores(scores, relevance, [make(4)])[make(4)], abs=1e-12
    )


def test_fixed_and_printed_normalisers():
    perfect = GradedRelevance([[3] * 25])
    scores = [list(range(25))]
    measures = [NDCG(), NDCG(normaliser="printed")]
    exact, printed = evaluate_scores(scores, perfect, measures).mean.values()
    assert exact == pytest.approx(1.0, abs=1e-12)
    assert printed == pytest.approx(1.000126, abs=5e-7)
    assert sum(7 / math.log2(i + 1) for i in range(1, 26)) == pytest.approx(56.922359, abs=5e-7)
    assert round(exact / 56.922359, 5) == 0.01757


def test_missing_positions_count_nothing_under_the_fixed_normaliser():
    short = evaluate_scores([[2, 1]], GradedRelevance([[3, 3]]), [NDCG()])[NDCG()]
    long = evaluate_scores([[9, 8, *[0] * 30]], GradedRelevance([[3, 3, *[0] * 30]]), [NDCG()])[NDCG()]
    assert short == pytest.approx(long, abs=1e-12)
    assert short < 0.3


def test_median_rank_rounds_the_middle_down():
    # First relevant ranks 1, 2, 4, 4: 0-based 0, 1, 3, 3, median 2, so rank 3; without the last 0, 1, 3, so rank 2.
    scores = np.tile([4, 3, 2, 1], (4, 1))
    relevance = SameLabel(["a", "b", "d", "d"], ["a", "b", "c", "d"])
    assert evaluate_scores(scores, relevance, [MedianRank()])[MedianRank()] == 3
    relevance = SameLabel(["a", "b", "d"], ["a", "b", "c", "d"])
    assert evaluate_scores(scores[:3], relevance, [MedianRank()])[MedianRank()] == 2
    relevance = SameLabel(["a", "b"], ["a", "b", "c", "d"])
    assert evaluate_scores(scores[:2], relevance, [MedianRank()])[MedianRank()] == 1


def test_several_captions_per_image_count_the_best():
    captions = SameLabel([0, 1], [0, 0, 1, 1])
    scores = [[0.1, 0.9, 0.8, 0.2], [0.9, 0.8, 0.1, 0.7]]
    result = evaluate_scores(scores, captions, [RecallAtK(1), RecallAtK(3), MeanRank()])
    assert (result[RecallAtK(1)], result[RecallAtK(3)], result[MeanRank()]) == (0.5, 1.0, 2.0)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=12).filter(any), st.sampled_from([2, 5, 11]))
def test_interpolated_precision_follows_its_definition(flags, levels):
    curve = InterpolatedPrecisionRecall(levels)
    grades = [float(flag) for flag in flags]
    result = evaluate_scores([list(range(len(grades)))[::-1]], GradedRelevance([grades]), [curve])[curve]
    expected = [interpolated(grades, level) for level in np.linspace(0, 1, levels)]
    np.testing.assert_allclose(result.y, expected, atol=1e-12)
    assert (np.diff(result.y) <= 1e-12).all()


def test_three_of_ten_reach_a_recall_of_three_tenths():
    grades = [1, 1, 1, *[0] * 10, *[1] * 7]
    curve = InterpolatedPrecisionRecall()
    result = evaluate_scores([list(range(20))[::-1]], GradedRelevance([grades]), [curve])[curve]
    assert result.y[3] == 1.0
    assert result.y[4] < 1.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=7).filter(
        lambda items: any(relevant for _, relevant in items)
    ),
    st.sampled_from([2, 3, 11]),
)
def test_interpolated_precision_is_the_mean_over_all_orders_of_ties(items, levels):
    scores, grades = [score for score, _ in items], [float(relevant) for _, relevant in items]
    curve = InterpolatedPrecisionRecall(levels)
    result = evaluate_scores([scores], GradedRelevance([grades]), [curve])[curve]
    every = list(orders(scores, grades))
    expected = [np.mean([interpolated(order, level) for order in every]) for level in np.linspace(0, 1, levels)]
    np.testing.assert_allclose(result.y, expected, atol=1e-12)


def test_large_ties_are_sampled_within_the_standard_error_that_is_stated():
    groups = ((0, 0, 60, 8), (90, 8, 40, 10), (130, 18, 3, 3))
    ranking, needed = tuple(_TieGroup(*group) for group in groups), (1, 5, 8, 9, 18, 21)
    exact = np.array(_expected_best(ranking, needed))
    sampled = _sampled_best(ranking, needed, 4000, np.random.default_rng(0))
    np.testing.assert_allclose(sampled, exact, atol=4 / (2 * np.sqrt(4000)))
    assert (np.diff(exact) <= 0).all()


def test_sampled_interpolated_precision_depends_on_the_query_alone():
    scores, grades = np.zeros((3, 300)), np.zeros((3, 300))
    grades[:, :60] = 1
    curve = InterpolatedPrecisionRecall(samples=20)
    three = evaluate_scores(scores, GradedRelevance(grades), [curve])[curve].y
    one = evaluate_scores(scores[:1], GradedRelevance(grades[:1]), [curve])[curve].y
    assert np.abs(three - one).max() < 0.1
    np.testing.assert_array_equal(three, evaluate_scores(scores, GradedRelevance(grades), [curve])[curve].y)
    # Precision at the last relevant item is near the share of relevant ones.
    assert three[-1] == pytest.approx(0.2, abs=0.01)


def test_ended_rankings_keep_their_last_precision():
    judged = sparse.csr_array(([1, 0, 1, 0, 1], ([0, 0, 1, 1, 1], [0, 1, 0, 1, 2])), shape=(2, 5))
    relevance = GradedRelevance(judged, judged_only=True)
    scores = [[5, 4, 3, 2, 1]] * 2
    curves = [PrecisionRecallCurve(), PrecisionScope((1, 2, 3))]
    result = evaluate_scores(scores, relevance, curves)
    np.testing.assert_allclose(result[curves[0]].y, [1, 0.5, (0.5 + 2 / 3) / 2])
    np.testing.assert_allclose(result[curves[0]].x, [0.75, 0.75, 1])
    np.testing.assert_allclose(result[curves[1]].y, result[curves[0]].y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AP(0), "cutoff must be a whole number of at least 1, got 0"),
        (lambda: AP(2.5), "cutoff must be a whole number"),
        (lambda: Precision(True), "cutoff must be a whole number"),
        (lambda: CMC(-1), "rank must be a whole number"),
        (lambda: AP(5, "all"), "denominator must be one of total, retrieved, min, got 'all'"),
        (lambda: NDCG(normaliser="best"), "normaliser must be one of fixed, printed, ideal"),
        (lambda: NDCG(None), "needs a cutoff; pass one or use 'ideal'"),
        (lambda: NDCG(10, "printed"), "holds for cutoff 25 and max_grade 3"),
        (lambda: NDCG(max_grade=0), "max_grade must be positive"),
        (lambda: InterpolatedPrecisionRecall(1), "levels must be at least 2"),
        (lambda: PrecisionScope(()), "scopes is empty"),
        (lambda: PrecisionScope((5, 0)), "each scope must be a whole number"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(InvalidInputError, match=message.replace("(", r"\(")):
        make()


def test_a_grade_above_the_fixed_normaliser_is_an_error():
    with pytest.raises(InvalidInputError, match="grade 4 exceeds max_grade 3"):
        evaluate_scores([[1, 0]], GradedRelevance([[4, 0]]), [NDCG()])


def test_foscttm_is_the_share_of_others_that_are_closer_than_each_partner():
    rng = np.random.default_rng(0)
    scores, asked, found = rng.integers(0, 4, (6, 9)), np.arange(6) % 3, np.arange(9) % 3
    expected = []
    for row, label in zip(scores, asked, strict=True):
        others, partners = row[found != label], row[found == label][:, None]
        expected.append(((others > partners) + 0.5 * (others == partners)).mean())
    result = evaluate_scores(scores, SameLabel(asked, found), [FOSCTTM()])
    np.testing.assert_allclose(result.values[FOSCTTM()], expected, atol=1e-12)
    assert result.chance[FOSCTTM()] == 0.5
    perfect, tied = np.eye(3)[asked] @ np.eye(3)[found].T, np.zeros((6, 9))
    for constant, value in ((perfect, 0.0), (-perfect, 1.0), (tied, 0.5)):
        assert evaluate_scores(constant, SameLabel(asked, found), [FOSCTTM()])[FOSCTTM()] == value
