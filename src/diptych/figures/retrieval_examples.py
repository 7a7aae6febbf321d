"""Queries and their first answers on a sheet, right ones and wrong ones told apart."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, NamedTuple

from diptych.arrays import AnyArray
from diptych.encoders import read_picture
from diptych.errors import InvalidInputError
from diptych.figures.style import INK, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WRONG = "#C1121F"
_RIGHT = "#009E73"
_MARKS = {True: ("✓", _RIGHT), False: ("✗", _WRONG)}
_SIDE = 192
_LINE = 24
_MAX_LINES = 5
_CELL = (2.1, 2.5)


class ShownItem(NamedTuple):
    """What is shown of an item: a picture (a path or an RGB array), words, or both."""

    text: str = ""
    picture: str | PathLike[str] | AnyArray | None = None


class RetrievalExample(NamedTuple):
    """A query, its answers from the first on, and whether each of them is right."""

    query: ShownItem
    answers: Sequence[ShownItem]
    right: Sequence[bool]


def retrieval_examples(examples: Sequence[RetrievalExample], *, title: str = "") -> Figure:
    """Draw a row for each query: the query at the left, then its first answers.

    Wrong answers are framed in red and bear a cross, right ones bear a tick, so that neither colour nor form alone
    tells them apart (Zhang et al., ACM Multimedia 2017, figure 4, has the red frames). Use it to see what kind of
    mistakes a method makes, which no number says.

    >>> from diptych.figures import retrieval_examples
    >>> from diptych.figures.retrieval_examples import RetrievalExample, ShownItem
    >>> answers = [ShownItem("a boat at sea"), ShownItem("a red car")]
    >>> sheet = retrieval_examples([RetrievalExample(ShownItem("a ship"), answers, [True, False])])
    >>> [axes.get_title(loc="left") for axes in sheet.axes]
    ['query', '1 ✓', '2 ✗']
    """
    if not examples or any(not example.answers for example in examples):
        raise InvalidInputError("there is nothing to draw; give at least one query with at least one answer")
    if any(len(example.answers) != len(example.right) for example in examples):
        raise InvalidInputError("every answer needs to be right or wrong; give as many of these as answers")
    columns = 1 + max(len(example.answers) for example in examples)
    with house_style():
        figure = new_figure(_CELL[0] * columns, _CELL[1] * len(examples) + 0.5)
        panels = figure.subplots(len(examples), columns, squeeze=False)
        for row, example in zip(panels, examples, strict=True):
            for axes in row[1 + len(example.answers) :]:
                axes.remove()
            _draw_item(row[0], example.query)
            row[0].set_title("query", fontsize=9, pad=4)
            for rank, (axes, item, right) in enumerate(zip(row[1:], example.answers, example.right, strict=False), 1):
                _draw_item(axes, item)
                _judge(axes, rank, right)
        figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure


def _draw_item(axes: Axes, item: ShownItem) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.6)
        spine.set_color("#BBBBBB")
    words = "\n".join(wrap(shorten(item.text, _LINE * _MAX_LINES, placeholder=" …"), _LINE))
    if item.picture is None:
        axes.text(0.5, 0.5, words, ha="center", va="center", fontsize=8, color=INK, transform=axes.transAxes)
        return
    axes.imshow(read_picture(item.picture, shortest_side=_SIDE))
    axes.set_anchor("N")
    axes.set_xlabel(words, fontsize=7.5, labelpad=3)


def _judge(axes: Axes, rank: int, right: bool) -> None:
    mark, colour = _MARKS[bool(right)]
    axes.set_title(f"{rank} {mark}", fontsize=10, color=colour, pad=4)
    if not right:
        for spine in axes.spines.values():
            spine.set_linewidth(3)
            spine.set_color(_WRONG)
