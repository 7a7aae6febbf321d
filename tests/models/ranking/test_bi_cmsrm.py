"""The exact search for the most violated ranking, against all rankings."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.metrics import AP, evaluate_scores
from diptych.metrics.relevance import SameLabel
from diptych.models.ranking.bi_cmsrm import average_precision_loss, most_violated_rankings


def precision_of(ranking: tuple[int, ...], relevant: np.ndarray) -> float:
    hits = np.cumsum(relevant[list(ranking)])
    return float(np.mean((hits / np.arange(1, len(ranking) + 1))[relevant[list(ranking)]]))


def order_score(ranking: tuple[int, ...], scores: np.ndarray, relevant: np.ndarray) -> float:
    place = np.argsort(ranking)
    right, wrong = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    terms = [(1 if place[i] < place[j] else -1) * (scores[i] - scores[j]) for i in right for j in wrong]
    return float(np.mean(terms))


def brute_force(scores: np.ndarray, relevant: np.ndarray) -> float:
    rankings = permutations(range(len(scores)))
    return max(1 - precision_of(one, relevant) + order_score(one, scores, relevant) for one in rankings)


def ranking_of(scores: np.ndarray, relevant: np.ndarray, before: np.ndarray) -> tuple[int, ...]:
    """Write out the ranking that the numbers of wrong items before each right one describe."""
    right = sorted(np.flatnonzero(relevant), key=lambda item: -scores[item])
    wrong = sorted(np.flatnonzero(~relevant), key=lambda item: -scores[item])
    ranking: list[int] = []
    for item in right:
        ranking += wrong[len([one for one in ranking if not relevant[one]]) : before[item]]
        ranking.append(item)
    return tuple(ranking + [item for item in wrong if item not in ranking])


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 6), st.sampled_from([0.05, 0.5, 3.0]))
def test_the_most_violated_ranking_is_the_best_of_all(seed: int, n_items: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    scores = scale * rng.normal(size=(3, n_items))
    # The rows of a batch have different numbers of right answers.
    relevant = np.array([rng.permutation(n_items) < rng.integers(1, n_items) for _ in range(3)])
    values, before = most_violated_rankings(scores, relevant)
    for row in range(3):
        assert values[row] == pytest.approx(brute_force(scores[row], relevant[row]))
        found = ranking_of(scores[row], relevant[row], before[row])
        reached = 1 - precision_of(found, relevant[row]) + order_score(found, scores[row], relevant[row])
        assert values[row] == pytest.approx(reached)


def test_the_slopes_are_those_of_finite_differences() -> None:
    rng = np.random.default_rng(3)
    scores = 0.4 * rng.normal(size=(5, 9))
    relevant = rng.random((5, 9)) < np.array([0.2, 0.3, 0.5, 0.7, 0.8])[:, None]
    losses, slopes = average_precision_loss(scores, relevant)
    assert (losses > 0).all()
    for item in range(9):
        step = np.zeros(9)
        step[item] = 1e-7
        change = average_precision_loss(scores + step, relevant)[0] - average_precision_loss(scores - step, relevant)[0]
        np.testing.assert_allclose(slopes[:, item], change / 2e-7, atol=1e-6)


def test_the_loss_bounds_one_minus_average_precision_and_vanishes_with_a_lead() -> None:
    rng = np.random.default_rng(4)
    scores, labels = rng.normal(size=(20, 30)), rng.integers(3, size=30)
    asked = rng.integers(3, size=20)
    relevant = asked[:, None] == labels
    losses, slopes = average_precision_loss(scores, relevant)
    precisions = evaluate_scores(scores, SameLabel(asked, labels), [AP()]).values[AP()]
    assert (losses >= 1 - precisions - 1e-12).all()
    np.testing.assert_allclose(slopes.sum(axis=1), 0, atol=1e-12)
    lead, flat = average_precision_loss(scores + 100 * relevant, relevant)
    np.testing.assert_allclose(lead, 0, atol=1e-12)
    assert not flat.any()


def test_a_list_of_one_kind_has_nothing_to_order() -> None:
    relevant = np.array([[True, True, True], [False, False, False], [True, False, False]])
    losses, slopes = average_precision_loss(np.array([[1.0, 2.0, 3.0]] * 3), relevant)
    assert losses[:2].tolist() == [0, 0]
    assert not slopes[:2].any()
    assert losses[2] > 0
