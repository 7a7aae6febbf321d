"""Figures that compare methods."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.errors import InvalidInputError
from diptych.figures import method_precision_recall, save_figure
from diptych.figures.retrieval_curves import MAX_PRECISION_RECALL_METHODS

CURVE = {"image_query": [0.6, 0.4, 0.2], "text_query": [0.5, 0.3, 0.1]}


def test_each_method_is_a_line_of_its_own_look_in_both_panels():
    methods = {f"method {number}": CURVE for number in range(MAX_PRECISION_RECALL_METHODS)}
    figure = method_precision_recall(methods, {way: [0.1] * 3 for way in CURVE}, title="All")
    for axes, way in zip(figure.axes, CURVE, strict=True):
        lines = axes.get_lines()
        assert [line.get_label() for line in lines] == [*methods, "chance"]
        assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(lines)
        assert np.allclose(lines[0].get_ydata(), CURVE[way])
        assert np.allclose(lines[0].get_xdata(), [0, 0.5, 1])
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


@pytest.mark.parametrize("count", [0, MAX_PRECISION_RECALL_METHODS + 1])
def test_methods_that_cannot_be_told_apart_are_refused(count):
    with pytest.raises(InvalidInputError, match=f"one to {MAX_PRECISION_RECALL_METHODS} methods"):
        method_precision_recall({str(number): CURVE for number in range(count)})


def test_equal_figures_are_equal_files(tmp_path):
    for name in ("one.png", "two.png"):
        save_figure(method_precision_recall({"CCA": CURVE}), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
