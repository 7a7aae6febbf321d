"""Rank correlation with ties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from diptych.errors import InvalidInputError
from diptych.metrics import spearman

VALUES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=25)


def mean_ranks(values: list[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]


@given(VALUES)
@settings(max_examples=30, deadline=None)
def test_it_is_the_correlation_of_mean_ranks(pairs: list[tuple[int, int]]) -> None:
    a, b = (list(map(float, side)) for side in zip(*pairs, strict=True))
    assume(len(set(a)) > 1 and len(set(b)) > 1)
    expected = np.corrcoef(mean_ranks(a), mean_ranks(b))[0, 1]
    found = spearman(a, b)
    assert found.coefficient == pytest.approx(expected, abs=1e-12)
    assert 0 <= found.p_value <= 1
    assert spearman(b, a).coefficient == pytest.approx(found.coefficient, abs=1e-12)
    assert spearman(np.exp(a), b).coefficient == pytest.approx(found.coefficient, abs=1e-12)
    assert spearman(np.negative(a), b).coefficient == pytest.approx(-found.coefficient, abs=1e-12)


def test_without_ties_it_is_the_short_form() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.permutation(40), rng.permutation(40)
    squared = float(((a - b) ** 2).sum())
    assert spearman(a, b).coefficient == pytest.approx(1 - 6 * squared / (40 * (40**2 - 1)))


def test_the_short_form_would_be_wrong_with_ties() -> None:
    visualness, clicked = [0, 0, 0, 1], [0, 0, 1, 1]
    ranks = np.array([mean_ranks(visualness), mean_ranks(clicked)])
    short = 1 - 6 * float(((ranks[0] - ranks[1]) ** 2).sum()) / (4 * 15)
    assert spearman(visualness, clicked).coefficient == pytest.approx(1 / math.sqrt(3))
    assert short != pytest.approx(1 / math.sqrt(3), abs=0.01)


def test_skipped_queries_are_left_out() -> None:
    assert spearman([1, 2, math.nan, 4], [1, 2, -9, math.nan]).n_queries == 2
    assert spearman([1, 2, 3, math.nan], [3, 5, 8, -9]).coefficient == 1


def test_where_nothing_varies_there_is_no_correlation() -> None:
    found = spearman([1, 1, 1], [1, 2, 3])
    assert math.isnan(found.coefficient)
    assert math.isnan(found.p_value)


def test_two_queries_prove_nothing() -> None:
    assert spearman([1, 2], [5, 3]).p_value == 1
    assert spearman([1, 2], [5, 3]).coefficient == pytest.approx(-1)


def test_independent_values_are_rarely_significant() -> None:
    rng = np.random.default_rng(1)
    p_values = [spearman(rng.integers(0, 5, 60), rng.random(60)).p_value for _ in range(200)]
    assert 0.01 < np.mean(np.array(p_values) < 0.05) < 0.1


def test_lists_of_different_queries_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="same queries"):
        spearman([1, 2], [1, 2, 3])
