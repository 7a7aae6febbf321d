"""Figures of query logs."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from diptych.errors import InvalidInputError
from diptych.figures import query_group_bars, visual_shares
from diptych.figures.group_results import MAX_QUERY_GROUP_METHODS


def test_shares_are_a_dotted_line_and_weighted_ones_a_solid_line():
    figure = visual_shares([0, 0.5, 1], [0.9, 0.3, 0], [1.0, 0.6, 0])
    plain, weighted = figure.axes[0].get_lines()
    assert (plain.get_linestyle(), weighted.get_linestyle()) == (":", "-")
    assert np.allclose(plain.get_ydata(), [90, 30, 0])
    assert np.allclose(weighted.get_ydata(), [100, 60, 0])
    assert len(visual_shares([0.5], [0.3]).axes[0].get_lines()) == 1


@pytest.mark.parametrize(("thresholds", "shares"), [([], []), ([0.1], [0.1, 0.2])])
def test_a_threshold_without_a_share_is_refused(thresholds, shares):
    with pytest.raises(InvalidInputError, match="each threshold needs a share"):
        visual_shares(thresholds, shares)


def test_groups_of_queries_are_bars_side_by_side():
    figure = query_group_bars(["low", "high"], {"a": [0.2, 0.4], "b": [0.3, math.nan]}, [0.1, 0.2])
    bars = figure.axes[0].patches
    assert np.allclose([bar.get_height() for bar in bars], [0.1, 0.2, 0.2, 0.4, 0.3, math.nan], equal_nan=True)
    of_low = sorted((bars[0], bars[2], bars[4]), key=lambda bar: bar.get_x())
    for left, right in pairwise(of_low):
        assert left.get_x() + left.get_width() < right.get_x()
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["random", "a", "b"]


@pytest.mark.parametrize("count", [0, MAX_QUERY_GROUP_METHODS + 1])
def test_too_many_methods_are_refused(count):
    with pytest.raises(InvalidInputError, match=f"one to {MAX_QUERY_GROUP_METHODS} methods"):
        query_group_bars(["all"], {str(number): [0.5] for number in range(count)})


def test_a_group_without_a_score_is_refused():
    with pytest.raises(InvalidInputError, match="one score of every method"):
        query_group_bars(["low", "high"], {"a": [0.5]})
