"""Chance levels have known values."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.metrics import (
    AP,
    CMC,
    NDCG,
    GradedRelevance,
    MeanRank,
    MedianRank,
    Precision,
    RankedGroups,
    RecallAtK,
    SameLabel,
    evaluate_scores,
)

WIKIPEDIA_TEST = [34, 88, 96, 85, 65, 58, 51, 41, 71, 104]
WIKIPEDIA_TRAINING = [138, 272, 244, 248, 202, 178, 186, 144, 214, 347]


def labels_of(counts):
    return np.repeat(np.arange(len(counts)), counts)


def chance_map(query_labels, gallery_labels):
    relevance = SameLabel(query_labels, gallery_labels)
    scores = np.zeros((len(query_labels), len(gallery_labels)), dtype=np.float32)
    result = evaluate_scores(scores, relevance, [AP()])
    assert result[AP()] == pytest.approx(result.chance[AP()], abs=1e-13)
    return result.chance[AP()]


@pytest.mark.parametrize(
    ("queries", "gallery", "published"),
    [
        (WIKIPEDIA_TEST, WIKIPEDIA_TEST, 0.1184),
        ([47, 51, 37, 51, 50, 59, 54, 67, 42, 42], [47, 51, 37, 51, 50, 59, 54, 67, 42, 42], 0.1132),
        ([15] * 20, [15] * 20, 0.0668),
        ([4] * 10, [40] * 10, 0.1126),
        (WIKIPEDIA_TEST, WIKIPEDIA_TRAINING, 0.1114),
    ],
)
def test_chance_map_of_known_galleries(queries, gallery, published):
    assert chance_map(labels_of(queries), labels_of(gallery)) == pytest.approx(published, abs=1.5e-4)


def test_closed_form_of_one_group():
    n, r = 693, 96
    t = (r - 1) / (n - 1)
    harmonic = (1 / np.arange(1, n + 1)).sum()
    value = AP().compute(RankedGroups.all_tied([[r]], [n]))[0]
    assert value == pytest.approx(t + (1 - t) * harmonic / n, abs=1e-14)


def test_caption_retrieval_chance():
    images, captions = np.arange(1000), np.repeat(np.arange(1000), 5)
    tied = RankedGroups.all_tied(np.ones((1000, 1), dtype=int), np.full(1000, 1000))
    assert [RecallAtK(k).chance(tied) for k in (1, 5, 10)] == pytest.approx([0.001, 0.005, 0.01])
    scores = (np.zeros((100, 5000), dtype=np.int8) for _ in range(10))
    result = evaluate_scores(scores, SameLabel(images, captions), [RecallAtK(1), RecallAtK(10), MedianRank()])
    assert result.chance[RecallAtK(1)] == pytest.approx(0.001)
    assert result.chance[RecallAtK(10)] == pytest.approx(0.01, abs=1e-4)
    # The best of 5 among 5000 lies below k with probability about 1 − (1 − k/5000)⁵.
    assert result.chance[MedianRank()] == pytest.approx(5000 * (1 - 0.5**0.2), abs=2)


def test_chance_equals_the_mean_over_random_rankings():
    rng = np.random.default_rng(0)
    queries, gallery = rng.integers(0, 4, 3000), rng.integers(0, 4, 40)
    measures = [AP(), AP(5, "retrieved"), Precision(5), CMC(2), MeanRank(), MedianRank()]
    result = evaluate_scores(rng.random((3000, 40)), SameLabel(queries, gallery), measures)
    for measure in measures[:-1]:
        spread = result.values[measure].std() / np.sqrt(3000)
        assert abs(result[measure] - result.chance[measure]) < 4 * spread
    assert abs(result[MedianRank()] - result.chance[MedianRank()]) <= 1


def test_graded_chance():
    rng = np.random.default_rng(1)
    grades = np.array([[3, 2, 0, 0, 2, 0, 0, 0]] * 4000)
    measures = [NDCG(3, "ideal"), NDCG(3)]
    result = evaluate_scores(rng.random(grades.shape), GradedRelevance(grades), measures)
    for measure in measures:
        assert abs(result[measure] - result.chance[measure]) < 4 * result.values[measure].std() / np.sqrt(4000)
