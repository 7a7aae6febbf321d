from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.colors import to_rgb

from diptych.errors import InvalidInputError
from diptych.figures import category_bars, cmc, confusion, precision_recall, save_figure
from diptych.figures.style import COLOURS
from diptych.metrics import (
    AP,
    CMC,
    CMCCurve,
    ConfusionMatrix,
    Evaluation,
    InterpolatedPrecisionRecall,
    PrecisionRecallCurve,
    SameLabel,
    evaluate_scores,
)
from diptych.space import Direction

CURVES = (InterpolatedPrecisionRecall(), PrecisionRecallCurve(), CMCCurve())
LABELS = np.arange(60) % 4


@pytest.fixture(scope="module")
def results() -> dict[Direction, Evaluation]:
    noise = np.random.default_rng(0).normal(size=(60, 60))
    scores = noise + (LABELS[:, None] == LABELS)
    relevance = SameLabel(LABELS, LABELS)
    return {
        "image_query": evaluate_scores(scores, relevance, [AP(), CMC(5), *CURVES]),
        "text_query": evaluate_scores(scores.T, relevance, [AP(), *CURVES]),
    }


@pytest.fixture(scope="module")
def chance() -> dict[Direction, Evaluation]:
    tied = evaluate_scores(np.zeros((60, 60)), SameLabel(LABELS, LABELS), [AP(), *CURVES])
    return {"image_query": tied, "text_query": tied}


@pytest.fixture(scope="module")
def matrix() -> ConfusionMatrix:
    scores = np.random.default_rng(1).normal(size=(60, 60)) + 2 * (LABELS[:, None] == LABELS)
    return ConfusionMatrix.from_scores(scores, LABELS, LABELS)


@pytest.mark.parametrize("interpolated", [True, False])
def test_precision_recall_draws_the_measured_points(
    results: dict[Direction, Evaluation], chance: dict[Direction, Evaluation], interpolated: bool
) -> None:
    curve = CURVES[0] if interpolated else CURVES[1]
    axes = precision_recall(results, chance, title="Both", interpolated=interpolated).axes[0]
    first, second, dashed, _ = axes.get_lines()
    for line, way in ((first, "image_query"), (second, "text_query")):
        points = results[way].curves[curve]
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([points.x, points.y]))
        assert f"MAP {results[way].mean[AP()]:.3f}" in line.get_label()
    assert dashed.is_dashed()
    assert dashed.get_label() == "chance"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("recall", results["image_query"].curves[curve].y_label)
    assert axes.get_title("left") == "Both"


def test_the_chance_line_of_the_full_curve_is_the_share_of_relevant_items(
    results: dict[Direction, Evaluation], chance: dict[Direction, Evaluation]
) -> None:
    dashed = precision_recall(results, chance, interpolated=False).axes[0].get_lines()[2]
    np.testing.assert_allclose(dashed.get_ydata(), 1 / 4)


def test_cmc_agrees_with_the_measure(results: dict[Direction, Evaluation], chance: dict[Direction, Evaluation]) -> None:
    axes = cmc(results, chance).axes[0]
    ranks, matched = np.asarray(axes.get_lines()[0].get_xydata()).T
    assert matched[ranks == 5] == pytest.approx(results["image_query"].mean[CMC(5)])
    assert axes.get_xlim()[0] == 1
    assert all(tick.get_text().isdigit() for tick in axes.get_xticklabels())
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend[-1] == "chance"


def test_confusion_shows_the_rates_in_percent(matrix: ConfusionMatrix) -> None:
    figure = confusion({"image_query": matrix, "text_query": matrix}, title="Both")
    for axes, name in zip(figure.axes[:2], ("image query", "text query"), strict=True):
        np.testing.assert_allclose(axes.get_images()[0].get_array(), 100 * matrix.rates)
        assert axes.get_title("left") == name
        written = {text.get_position(): text.get_text() for text in axes.texts}
        for (column, row), text in written.items():
            assert text == f"{100 * matrix.rates[row, column]:.0f}"


def test_bars_have_the_heights_of_the_means() -> None:
    means = {"image_query": {"art": 0.2, "music": None}, "text_query": {"art": 0.3, "music": 0.4}}
    axes = category_bars(means, {way: {"art": 0.1, "music": 0.1} for way in means}).axes[0]
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_array_equal(heights, [0.2, np.nan, 0.3, 0.4])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["image query", "text query", "chance"]


def test_the_colours_differ_in_brightness_too() -> None:
    """Whoever sees no colour, or prints without, tells the directions apart by lightness."""
    image, text = (np.dot(to_rgb(colour), [0.2126, 0.7152, 0.0722]) for colour in COLOURS.values())
    assert abs(image - text) > 0.05


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_equal_figures_are_equal_files(tmp_path: Path, matrix: ConfusionMatrix, ending: str) -> None:
    files = [tmp_path / f"{number}.{ending}" for number in range(2)]
    for file in files:
        save_figure(confusion({"image_query": matrix}), file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_reader_s_own_settings_are_neither_used_nor_changed(tmp_path: Path) -> None:
    means = {"image_query": {"art": 0.2}, "text_query": {"art": 0.3}}
    save_figure(category_bars(means), tmp_path / "before.png")
    size = rcParams["font.size"]
    rcParams["font.size"] = 30
    try:
        save_figure(category_bars(means), tmp_path / "after.png")
        assert rcParams["font.size"] == 30
    finally:
        rcParams["font.size"] = size
    assert (tmp_path / "before.png").read_bytes() == (tmp_path / "after.png").read_bytes()


def test_what_is_missing_is_named(results: dict[Direction, Evaluation], tmp_path: Path) -> None:
    bare = evaluate_scores([[0.9, 0.1]], SameLabel([0], [0, 1]), [AP()])
    with pytest.raises(InvalidInputError, match=r"add CMCCurve\(\)"):
        cmc({"image_query": bare, "text_query": bare})
    with pytest.raises(InvalidInputError, match="no confusion matrix"):
        confusion({})
    with pytest.raises(InvalidInputError, match="same categories"):
        category_bars({"image_query": {"art": 0.1}, "text_query": {"music": 0.1}})
    with pytest.raises(InvalidInputError, match=r"\.png or \.svg"):
        save_figure(cmc(results), tmp_path / "figure.bmp")


def test_without_matplotlib_the_message_names_the_extra(tmp_path: Path) -> None:
    """A process whose path lacks matplotlib, as after a plain ``pip install diptych``."""
    code = f"""
import importlib.machinery, sys

class Without(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "matplotlib" else super().find_spec(name, path, target)

sys.meta_path[:] = [Without if finder is importlib.machinery.PathFinder else finder for finder in sys.meta_path]
sys.argv = ["diptych", "evaluate", "-d", "scenes", "-m", "cca", "--plots", {str(tmp_path / "plots")!r}]
from diptych.cli import main
main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "error: figures need matplotlib: pip install 'diptych[plots]'\n"
    assert not (tmp_path / "plots").exists()
