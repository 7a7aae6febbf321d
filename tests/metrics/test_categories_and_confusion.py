"""Means per category and the confusion of classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.errors import InvalidInputError
from diptych.metrics import AP, ConfusionMatrix, SameLabel, category_means, evaluate_scores
from diptych.space import Space
from tests.metrics.enumerated_orders import average_precision, expectation


def test_category_means_weighted_by_queries_give_map():
    rng = np.random.default_rng(0)
    queries, gallery = rng.choice(["art", "music", "sport"], 50), rng.choice(["art", "music", "sport"], 80)
    result = evaluate_scores(rng.random((50, 80)), SameLabel(queries, gallery), [AP()])
    means = category_means(result.values[AP()], queries)
    assert list(means) == ["art", "music", "sport"]
    assert means["art"] == pytest.approx(result.values[AP()][queries == "art"].mean())
    weighted = sum(mean * (queries == name).sum() for name, mean in means.items()) / 50
    assert weighted == pytest.approx(result[AP()])


def test_skipped_queries_do_not_enter_their_category():
    assert category_means(np.array([0.5, np.nan, np.nan]), [1, 1, 2]) == {1: 0.5}


def test_category_means_need_one_label_per_value():
    with pytest.raises(InvalidInputError, match="one entry per query"):
        category_means(np.array([0.5, 0.2]), [1])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_prediction_is_the_class_of_the_largest_expected_precision(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (3, 6)).astype(float)
    queries, gallery = rng.integers(0, 3, 3), rng.integers(0, 3, 6)
    matrix = ConfusionMatrix.from_scores(scores, queries, gallery)
    expected = np.zeros_like(matrix.counts)
    for query in range(3):
        precisions = [
            round(
                expectation(
                    lambda order: average_precision(order, None, "total"),
                    scores[query].tolist(),
                    (gallery == name).astype(float).tolist(),
                ),
                12,
            )
            for name in matrix.classes
        ]
        true = np.flatnonzero(matrix.classes == queries[query])[0]
        expected[true, np.argmax(precisions)] += 1
    # Equal expectations of two classes may differ in the last bit, so only clear winners are compared one by one.
    assert matrix.counts.sum() == 3
    np.testing.assert_array_equal(matrix.counts.sum(axis=1), expected.sum(axis=1))
    sorted_precisions = np.sort(precisions)
    if len(precisions) == 1 or sorted_precisions[-1] - sorted_precisions[-2] > 1e-9:
        only_last = ConfusionMatrix.from_scores(scores[2:], queries[2:], gallery)
        best = matrix.classes[np.argmax(precisions)]
        assert only_last.counts[:, only_last.classes == best].sum() == 1


def test_equal_precisions_go_to_the_first_class():
    matrix = ConfusionMatrix.from_scores([[1.0, 1.0]], ["b"], ["b", "a"])
    assert matrix.counts.tolist() == [[0, 0], [1, 0]]


def test_separated_classes_are_not_confused():
    labels = np.arange(90) % 3
    points = np.eye(3)[labels]
    matrix = ConfusionMatrix.from_points(points, points, Space("cosine"), labels, labels)
    np.testing.assert_array_equal(matrix.counts, 30 * np.eye(3, dtype=int))
    np.testing.assert_array_equal(matrix.rates, np.eye(3))


@pytest.mark.parametrize("memory", [1, 50_000, 1 << 28])
def test_blocks_and_points_agree(memory):
    rng = np.random.default_rng(1)
    queries, gallery = rng.random((40, 4)), rng.random((60, 4))
    query_labels, gallery_labels = rng.integers(0, 4, 40), rng.integers(0, 4, 60)
    expected = ConfusionMatrix.from_scores(Space("euclidean").compare(queries, gallery), query_labels, gallery_labels)
    result = ConfusionMatrix.from_points(
        queries, gallery, Space("euclidean"), query_labels, gallery_labels, memory=memory
    )
    np.testing.assert_array_equal(result.counts, expected.counts)
    np.testing.assert_allclose(result.rates.sum(axis=1), 1)


def test_classes_that_the_gallery_lacks_are_never_predicted():
    matrix = ConfusionMatrix.from_scores([[0.5, 0.4]], ["z"], ["a", "b"])
    assert matrix.counts.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert matrix.rates[0].tolist() == [0, 0, 0]


def test_errors_name_the_fix():
    with pytest.raises(InvalidInputError, match="hold NaN"):
        ConfusionMatrix.from_scores([[np.nan, 1.0]], [0], [0, 1])
    with pytest.raises(InvalidInputError, match="scores have 1 rows, but there are 2 query labels"):
        ConfusionMatrix.from_scores([[0.0, 1.0]], [0, 1], [0, 1])
    with pytest.raises(InvalidInputError, match="gallery has 1 points"):
        ConfusionMatrix.from_points(np.ones((1, 2)), np.ones((1, 2)), Space("dot"), [0], [0, 1])
