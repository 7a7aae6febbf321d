"""One pass over blocks, whatever their size and the space."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from diptych.errors import InvalidInputError
from diptych.metrics import (
    AP,
    CMC,
    NDCG,
    CMCCurve,
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
    SharedLabel,
    evaluate,
    evaluate_scores,
)
from diptych.metrics.score_ranking import first_of_equals
from diptych.space import SPACE_NAMES, Space
from tests.metrics.enumerated_orders import average_precision

MEASURES = [AP(), AP(7, "retrieved"), AP(7, "min"), Precision(5), Recall(5), CMC(3), RecallAtK(5), MeanRank()]
CURVES = [CMCCurve(), PrecisionRecallCurve(), PrecisionScope((1, 5, 9)), InterpolatedPrecisionRecall()]
MEGABYTE = 1 << 20


def assert_equal_results(left, right, tolerance=1e-12):
    for measure, values in left.values.items():
        np.testing.assert_allclose(values, right.values[measure], atol=tolerance, rtol=0)
        assert left[measure] == pytest.approx(right[measure], abs=tolerance)
        assert left.chance[measure] == pytest.approx(right.chance[measure], abs=tolerance)
    for curve, points in left.curves.items():
        np.testing.assert_allclose(points.x, right.curves[curve].x, atol=tolerance, rtol=0)
        np.testing.assert_allclose(points.y, right.curves[curve].y, atol=tolerance, rtol=0)


def tied_scores(rng, shape):
    return rng.integers(0, 6, shape).astype(np.float32)


def relevances(rng, n_queries, n_gallery):
    grades = np.where(rng.random((n_queries, n_gallery)) < 0.3, rng.integers(0, 4, (n_queries, n_gallery)), 0)
    grades[:, 0] = 3
    judged = sparse.coo_array(grades)
    stored = sparse.csr_array(
        (
            np.concatenate([judged.data, np.zeros(2 * n_queries, dtype=int)]),
            (
                np.concatenate([judged.coords[0], np.repeat(np.arange(n_queries), 2)]),
                np.concatenate([judged.coords[1], rng.integers(0, n_gallery, 2 * n_queries)]),
            ),
        ),
        shape=grades.shape,
    )
    return {
        "same": SameLabel(rng.integers(0, 4, n_queries), np.arange(n_gallery) % 4),
        "shared": SharedLabel(rng.random((n_queries, 5)) < 0.4, rng.random((n_gallery, 5)) < 0.3),
        "graded": GradedRelevance(grades),
        "judged": GradedRelevance(stored, judged_only=True),
    }


@pytest.mark.parametrize("kind", ["same", "shared", "graded", "judged"])
@pytest.mark.parametrize("ties", ["expected", "random", "optimistic", "pessimistic"])
@pytest.mark.parametrize("memory", [1, 60_000])
def test_block_size_changes_nothing(kind, ties, memory):
    rng = np.random.default_rng(0)
    relevance = relevances(rng, 23, 40)[kind]
    scores = tied_scores(rng, (23, 40))
    measures = [*MEASURES, MedianRank(), NDCG(6, "ideal"), *CURVES]
    whole = evaluate_scores(scores, relevance, measures, ties=ties, empty="zero", seed=3)
    blocks = iter([scores[:1], scores[1:9], scores[9:]])
    for other in (scores, blocks):
        result = evaluate_scores(other, relevance, measures, ties=ties, empty="zero", seed=3, memory=memory)
        assert_equal_results(result, whole)


@pytest.mark.parametrize("name", SPACE_NAMES)
def test_points_and_scores_agree(name):
    rng = np.random.default_rng(1)
    points = rng.random((70, 6))
    points = np.packbits(points > 0.5, axis=1) if name == "hamming" else points / points.sum(axis=1, keepdims=True)
    space = Space(name)
    queries, gallery = points[:30], points[30:]
    relevance = SameLabel(np.arange(30) % 3, np.arange(40) % 3)
    for direction in ("image_query", "text_query"):
        expected = evaluate_scores(space.compare(queries, gallery, direction), relevance, MEASURES)
        for memory in (1, 20_000, 1 << 28):
            result = evaluate(queries, gallery, space, relevance, MEASURES, direction=direction, memory=memory)
            assert_equal_results(result, expected)


def test_split_spaces_use_the_part_of_the_direction():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 256, (50, 5), dtype=np.uint8)
    relevance = SameLabel(np.arange(20) % 3, np.arange(30) % 3)
    for direction, part in (("image_query", codes[:, :2]), ("text_query", codes[:, 2:])):
        split = evaluate(codes[:20], codes[20:], Space("hamming", 2), relevance, [AP()], direction=direction)
        plain = evaluate(part[:20], part[20:], Space("hamming"), relevance, [AP()])
        np.testing.assert_array_equal(split.values[AP()], plain.values[AP()])


@pytest.mark.parametrize("kind", ["same", "shared", "graded", "judged"])
@pytest.mark.parametrize("n_bytes", [1, 2, 3, 4, 8, 9, 40])
@pytest.mark.parametrize("ties", ["expected", "random"])
def test_histograms_equal_sorting(kind, n_bytes, ties):
    rng = np.random.default_rng(n_bytes)
    codes = rng.integers(0, 256, (90, n_bytes), dtype=np.uint8)
    queries, gallery = codes[:20], codes[20:]
    relevance = relevances(rng, 20, 70)[kind]
    measures = [*MEASURES, NDCG(6, "ideal"), *CURVES]
    sorted_form = evaluate_scores(
        Space("hamming").compare(queries, gallery), relevance, measures, ties=ties, empty="zero"
    )
    histograms = evaluate(queries, gallery, Space("hamming"), relevance, measures, ties=ties, empty="zero")
    assert_equal_results(histograms, sorted_form)


@pytest.mark.parametrize("n_bytes", [4, 5, 40])
def test_histograms_of_large_galleries(n_bytes):
    rng = np.random.default_rng(0)
    gallery = rng.integers(0, 256, (150_001, n_bytes), dtype=np.uint8)
    relevance = SameLabel([0, 1, 2], np.minimum(rng.integers(0, 4, len(gallery)), 2))
    queries = gallery[:3]
    sorted_form = evaluate_scores(Space("hamming").compare(queries, gallery), relevance, [AP(), AP(5000, "retrieved")])
    histograms = evaluate(queries, gallery, Space("hamming"), relevance, [AP(), AP(5000, "retrieved")])
    assert_equal_results(histograms, sorted_form)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64, np.int64]))
def test_gallery_order_changes_nothing(seed, dtype):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 8, (5, 30)).astype(dtype)
    queries, gallery = rng.integers(0, 3, 5), np.arange(30) % 3
    shuffled = rng.permutation(30)
    left = evaluate_scores(scores, SameLabel(queries, gallery), [*MEASURES, MedianRank(), *CURVES[:3]])
    right = evaluate_scores(
        scores[:, shuffled], SameLabel(queries, gallery[shuffled]), [*MEASURES, MedianRank(), *CURVES[:3]]
    )
    assert_equal_results(left, right, tolerance=1e-14)


def test_average_precision_without_ties_is_the_plain_loop():
    rng = np.random.default_rng(5)
    scores = rng.standard_normal((40, 300)).astype(np.float32)
    queries, gallery = rng.integers(0, 5, 40), rng.integers(0, 5, 300)
    result = evaluate_scores(scores, SameLabel(queries, gallery), [AP()])
    for query in range(40):
        order = np.argsort(-scores[query], kind="stable")
        flags = (gallery[order] == queries[query]).astype(float).tolist()
        assert result.values[AP()][query] == pytest.approx(average_precision(flags, None, "total"), abs=1e-13)


def test_a_perfect_and_a_worst_ranking():
    labels = np.arange(60) % 4
    same = (labels[:, None] == labels).astype(float)
    perfect = evaluate_scores(same, SameLabel(labels, labels), [*MEASURES, MedianRank()])
    assert perfect[AP()] == perfect[CMC(3)] == perfect[MedianRank()] == perfect[MeanRank()] == pytest.approx(1)
    worst = evaluate_scores(-same, SameLabel(labels, labels), [AP(), MeanRank()], ties="pessimistic")
    assert worst[MeanRank()] == 46
    assert worst[AP()] < worst.chance[AP()]


def test_queries_without_relevant_items():
    relevance = SameLabel(["cat", "bird"], ["cat", "dog", "dog"])
    scores = [[0.9, 0.5, 0.1], [0.3, 0.2, 0.1]]
    measures = [
        AP(),
        CMC(1),
        MeanRank(),
        MedianRank(),
        CMCCurve(),
        PrecisionRecallCurve(),
        InterpolatedPrecisionRecall(),
    ]
    skipped = evaluate_scores(scores, relevance, measures)
    assert (skipped.n_queries, skipped.n_without_relevant) == (2, 1)
    assert np.isnan(skipped.values[AP()][1])
    assert (skipped[AP()], skipped[MeanRank()]) == (1.0, 1.0)
    assert skipped[CMCCurve()].y[-1] == 1.0
    counted = evaluate_scores(scores, relevance, measures, empty="zero")
    assert (counted[AP()], counted[CMC(1)]) == (0.5, 0.5)
    assert counted.values[MeanRank()][1] == 4
    assert counted[CMCCurve()].y[-1] == 0.5
    assert counted[PrecisionRecallCurve()].x[-1] == 0.5
    assert counted[InterpolatedPrecisionRecall()].y[0] == 0.5
    assert counted.chance[AP()] == pytest.approx(skipped.chance[AP()] / 2)
    assert counted.n_without_relevant == 1


def test_results_read_like_a_mapping():
    result = evaluate_scores([[1, 0]], SameLabel([0], [0, 1]), [AP(), CMCCurve()])
    assert AP() in result
    assert CMC(1) not in result
    assert CMCCurve() in result
    assert result[CMCCurve()] is result.curves[CMCCurve()]
    with pytest.raises(InvalidInputError, match=r"CMC\(rank=1\) was not measured; measured were AP\("):
        result[CMC(1)]


def label_pair(n_queries, n_gallery):
    return SameLabel(np.arange(n_queries) % 10, np.arange(n_gallery) % 10)


@pytest.mark.parametrize("memory", [4 * MEGABYTE, 64 * MEGABYTE])
@pytest.mark.parametrize("name", ["cosine", "euclidean", "l1", "hamming"])
@pytest.mark.parametrize("ties", ["expected", "pessimistic"])
def test_memory_is_bounded(memory, name, ties):
    rng = np.random.default_rng(0)
    n_queries, n_gallery = 150, 20_000
    if name == "hamming":
        queries = rng.integers(0, 256, (n_queries, 4), dtype=np.uint8)
        gallery = rng.integers(0, 256, (n_gallery, 4), dtype=np.uint8)
    else:
        queries, gallery = rng.random((n_queries, 16), dtype=np.float32), rng.random((n_gallery, 16), dtype=np.float32)
    measures = [AP(), AP(50, "retrieved"), NDCG(25)]
    # What is imported at the first use is not counted.
    evaluate(queries[:2], gallery[:100], Space(name), label_pair(2, 100), measures, ties=ties)
    tracemalloc.start()
    evaluate(queries, gallery, Space(name), label_pair(n_queries, n_gallery), measures, ties=ties, memory=memory)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= memory


@pytest.mark.parametrize("memory", [4 * MEGABYTE, 64 * MEGABYTE])
def test_memory_is_bounded_when_everything_is_relevant(memory):
    rng = np.random.default_rng(0)
    scores = rng.random((100, 10_000), dtype=np.float32)
    relevance = SameLabel(np.zeros(100, dtype=int), np.zeros(10_000, dtype=int))
    tracemalloc.start()
    evaluate_scores(scores, relevance, [AP(), NDCG(25), *CURVES], memory=memory)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= memory


ONE = SameLabel([0], [0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate_scores([[np.nan, 1]], ONE, [AP()]), "scores of query 0 hold NaN"),
        (lambda: evaluate_scores(np.zeros((1, 0)), ONE, [AP()]), "gallery is empty"),
        (lambda: evaluate_scores([[1, 2, 3]], ONE, [AP()]), "scores have 3 columns, but the relevance knows 2"),
        (lambda: evaluate_scores([[1, 2], [1, 2]], ONE, [AP()]), "scores have more rows"),
        (lambda: evaluate_scores(iter([]), ONE, [AP()]), "scores have 0 rows"),
        (lambda: evaluate_scores([1, 2], ONE, [AP()]), "scores must be a matrix"),
        (lambda: evaluate_scores([["a", "b"]], ONE, [AP()]), "scores must be real numbers"),
        (lambda: evaluate_scores([[1, 2]], ONE, []), "got none"),
        (lambda: evaluate_scores([[1, 2]], ONE, ["MAP"]), "measures must be measures or curves .* got 'MAP'"),
        (lambda: evaluate_scores([[1, 2]], ONE, [AP()], ties="lucky"), "ties must be one of expected, random"),
        (lambda: evaluate_scores([[1, 2]], ONE, [AP()], empty="drop"), "empty must be one of skip, zero"),
        (lambda: evaluate_scores([[1, 2]], SameLabel([5], [0, 1]), [AP()]), "no query has a relevant item"),
        (
            lambda: evaluate(np.ones((1, 2)), np.ones((2, 2)), Space("dot"), ONE, [AP()], direction="image"),
            "direction must be one of image_query, text_query",
        ),
        (lambda: evaluate(np.ones((2, 2)), np.ones((2, 2)), Space("dot"), ONE, [AP()]), "queries has 2 points"),
        (lambda: evaluate(np.ones((1, 2)), np.ones((0, 2)), Space("dot"), ONE, [AP()]), "gallery is empty"),
        (lambda: evaluate(np.ones(2), np.ones((2, 2)), Space("dot"), ONE, [AP()]), "queries must be a matrix"),
        (
            lambda: evaluate(np.ones((1, 2)), np.ones((2, 2)), Space("hamming"), ONE, [AP()]),
            "queries must be packed uint8 codes",
        ),
        (
            lambda: evaluate(np.ones((1, 1), np.uint8), np.ones((2, 2), np.uint8), Space("hamming"), ONE, [AP()]),
            "codes of one space have one width",
        ),
    ],
)
def test_errors_name_the_fix(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


class LastBits(Space):
    """The cosine of a library of matrix products whose sums differ in the last bit from place to place."""

    def compare(self, queries, gallery, direction="image_query"):
        scores = super().compare(queries, gallery, direction)
        return scores * (1 + np.finfo(scores.dtype).eps * (np.arange(scores.shape[1]) % 3))


@pytest.mark.parametrize("space", [Space("cosine"), LastBits("cosine")])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_items_with_equal_points_tie_wherever_they_stand(space, kind):
    rng = np.random.default_rng(0)
    points = np.repeat(rng.normal(size=(1, 19)), 1003, axis=0).astype(kind)
    relevance = SameLabel(np.zeros(4), np.arange(1003) >= 500)
    result = evaluate(rng.normal(size=(4, 19)).astype(kind), points, space, relevance, [AP()])
    assert result.values[AP()] == pytest.approx(evaluate_scores(np.zeros((4, 1003)), relevance, [AP()]).values[AP()])


def test_rows_of_other_zeros_are_equal_and_nothing_else_is():
    points = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    places, originals = first_of_equals(points)
    assert len(places) == 2
    np.testing.assert_array_equal(points[places][originals], points)


def test_many_scores_are_ranked_by_threads_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    labels, gallery = rng.integers(5, size=150), rng.integers(5, size=4000)
    scores = np.round(rng.normal(size=(150, 4000)), 2).astype(np.float32)
    relevance = SameLabel(labels, gallery)
    monkeypatch.setattr("diptych.metrics.score_ranking.available_processors", lambda: 3)
    threaded = evaluate_scores(scores, relevance, MEASURES)
    few_at_a_time = evaluate_scores(iter(np.array_split(scores, 50)), relevance, MEASURES)
    for measure in MEASURES:
        np.testing.assert_allclose(threaded.values[measure], few_at_a_time.values[measure], rtol=1e-12)
    scores[7, 5] = scores[90, 5] = np.nan
    with pytest.raises(InvalidInputError, match="query 7 hold NaN"):
        evaluate_scores(scores, relevance, [AP()])
