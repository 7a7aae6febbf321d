"""Maps of a space, sheets of answers and precision by scope: what is drawn is what was measured."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from matplotlib.colors import to_hex

from diptych.errors import InvalidInputError, MissingPackageError
from diptych.figures import embedding_map, precision_scope, retrieval_examples, save_figure
from diptych.figures.embedding_map import MAX_CLASSES, neighbourhood
from diptych.figures.retrieval_examples import RetrievalExample, ShownItem

CURVE = {"image_query": [0.6, 0.4, 0.2], "text_query": [0.5, 0.3, 0.1]}
RED = "#c1121f"


def points(n: int = 24, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)), rng.normal(size=(n, 5)) + 0.4, np.arange(n) % 3


@pytest.mark.parametrize("k", [1, 5, 47])
def test_neighbours_are_counted_as_by_hand(k: int) -> None:
    images, texts, labels = points()
    rows = np.concatenate([images, texts])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    classes, sides = np.tile(labels, 2), np.repeat([0, 1], 24)
    same = other = 0
    for row in range(48):
        order = [found for found in np.argsort(-(rows @ rows[row]), kind="stable") if found != row][:k]
        same += sum(classes[found] == classes[row] for found in order)
        other += sum(sides[found] != sides[row] for found in order)
    found = neighbourhood(images, texts, labels, k)
    assert found.same_class == pytest.approx(same / (48 * k))
    assert found.other_side == pytest.approx(other / (48 * k))


def test_ties_at_the_edge_share_the_places_left() -> None:
    """Eight equal points: any seven of the others are as near, three of the same class and four of the other side."""
    same = neighbourhood(np.ones((4, 2)), np.ones((4, 2)), [0, 0, 1, 1], k=2)
    assert same.same_class == pytest.approx(3 / 7)
    assert same.other_side == pytest.approx(4 / 7)


def test_a_map_shows_every_point_once_and_says_what_was_measured() -> None:
    images, texts, labels = points()
    names = np.array(["art", "music", "sport"])[labels]
    figure = embedding_map({"before": (images, texts), "after": (texts, texts)}, names, k=5, title="Small")
    for axes in figure.axes:
        drawn = {one.get_label(): one for one in axes.collections}
        assert len(drawn) == 6
        assert sum(len(one.get_offsets()) for one in drawn.values()) == 48
        # Forms tell the sides apart, colours the classes.
        assert drawn["art, picture"].get_paths()[0].vertices.shape != drawn["art, text"].get_paths()[0].vertices.shape
        assert to_hex(drawn["art, picture"].get_facecolor()[0]) == to_hex(drawn["art, text"].get_edgecolor()[0])
    measured = neighbourhood(images, texts, labels, 5)
    assert f"same class {measured.same_class:.2f} (chance 0.32)" in figure.axes[0].get_xlabel()
    assert "Small: t-SNE" in figure.get_suptitle()


def test_a_map_that_cannot_be_drawn_is_refused() -> None:
    images, texts, labels = points()
    with pytest.raises(InvalidInputError, match="aligned points of one space"):
        embedding_map({"after": (images, texts[:, :3])}, labels)
    with pytest.raises(InvalidInputError, match=f"at most {MAX_CLASSES} classes, got 24"):
        embedding_map({"after": (images, texts)}, np.arange(24))
    with pytest.raises(InvalidInputError, match="method must be one of tsne, umap"):
        embedding_map({"after": (images, texts)}, labels, method="pca")
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        embedding_map({}, labels)
    with pytest.raises(InvalidInputError, match=r"k must lie in 1\.\.47"):
        neighbourhood(images, texts, labels, k=48)
    if find_spec("umap") is None:
        with pytest.raises(MissingPackageError, match="pip install umap-learn"):
            embedding_map({"after": (images, texts)}, labels, method="umap")


def test_wrong_answers_are_framed_and_crossed(tmp_path) -> None:
    picture = np.zeros((20, 30, 3), dtype=np.uint8)
    answers = [ShownItem("a boat at sea"), ShownItem("words " * 60, picture), ShownItem("a hill", picture)]
    sheet = retrieval_examples(
        [
            RetrievalExample(ShownItem("a ship", picture), answers, [True, False, True]),
            RetrievalExample(ShownItem("a car"), answers[:1], [False]),
        ]
    )
    titles = [axes.get_title(loc="left") for axes in sheet.axes]
    assert titles == ["query", "1 ✓", "2 ✗", "3 ✓", "query", "1 ✗"]
    framed = [to_hex(axes.spines["left"].get_edgecolor()) == RED for axes in sheet.axes]
    assert framed == ["✗" in title for title in titles]
    assert sheet.axes[2].get_xlabel().endswith("…")
    assert sheet.axes[1].texts[0].get_text() == "a boat at sea"
    for name in ("one.png", "two.png"):
        save_figure(sheet, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_sheet_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        retrieval_examples([])
    with pytest.raises(InvalidInputError, match="right or wrong"):
        retrieval_examples([RetrievalExample(ShownItem("a"), [ShownItem("b")], [])])


def test_each_method_is_a_line_over_the_scopes() -> None:
    methods = {f"method {number}": CURVE for number in range(12)}
    figure = precision_scope([10, 50, 100], methods, {"image_query": 0.1, "text_query": 0.2}, title="All")
    for axes, way in zip(figure.axes, CURVE, strict=True):
        lines = axes.get_lines()
        assert len({(line.get_color(), line.get_marker()) for line in lines}) == 13
        np.testing.assert_allclose(lines[0].get_ydata(), CURVE[way])
        np.testing.assert_allclose(lines[0].get_xdata(), [10, 50, 100])
    with pytest.raises(InvalidInputError, match="one precision for each of the 2 scopes"):
        precision_scope([10, 50], {"CCA": CURVE})
    with pytest.raises(InvalidInputError, match="draw one to"):
        precision_scope([10], {})
