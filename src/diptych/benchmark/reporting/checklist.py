"""The items of the five papers: what shows each of them here, and why an item is not complete."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from posixpath import relpath
from typing import Literal, get_args

from diptych.benchmark.papers import CITATIONS, SHORT
from diptych.benchmark.tables import NOTHING, Table, as_markdown
from diptych.errors import InvalidInputError

State = Literal["complete", "partial", "missing"]

_HEADINGS = ("#", "place", "item", "state", "shown by", "what differs, or why not")
_INTRODUCTION = """\
# The five papers, item by item

Every method, table, figure, parameter and claim of five papers: the command or the part of the package that shows it,
and where an item is not complete, why. *Complete* means: in the code and run; where data cannot be shipped, run on a
small folder in the published layout, so that one command goes from the files to the table. *Partial*
names what is missing. The rows are in `checklist.csv` of the package; a test fails when a row names a command, option,
task or name that does not exist. Numbers stand on [another page](reproduction.md)."""


@dataclass(frozen=True)
class Item:
    """Something a paper contains; ``shown_by`` holds commands, dotted names and documents."""

    row: int
    paper: str
    place: str
    item: str
    state: State
    shown_by: tuple[str, ...]
    note: str


@cache
def paper_items() -> tuple[Item, ...]:
    """Return every row of ``checklist.csv``."""
    text = files("diptych.benchmark").joinpath("checklist.csv").read_text(encoding="utf-8")
    return tuple(map(_item, csv.DictReader(text.splitlines())))


def _item(line: dict[str, str]) -> Item:
    if line["state"] not in get_args(State):
        raise InvalidInputError(f"row {line['row']} of checklist.csv has the state {line['state']!r}")
    shown_by = tuple(part.strip() for part in line.pop("shown_by").split(";") if part.strip())
    return Item(int(line.pop("row")), shown_by=shown_by, **line)  # type: ignore[arg-type]


def checklist_page() -> str:
    """Return the page as Markdown: how many items are complete, then a table for each paper."""
    parts = [_INTRODUCTION, as_markdown(_counts(paper_items()))]
    for paper, short in SHORT.items():
        rows = tuple(_cells(item) for item in paper_items() if item.paper == paper)
        parts += [f"## {short}", f"{CITATIONS[paper]}.", as_markdown(Table(short, _HEADINGS, rows, len(_HEADINGS)))]
    return "\n\n".join(parts) + "\n"


def _counts(items: tuple[Item, ...]) -> Table:
    groups = [(short, [item for item in items if item.paper == paper]) for paper, short in SHORT.items()]
    states = get_args(State)
    rows = tuple(
        (name, str(len(some)), *(str(sum(item.state == state for item in some)) for state in states))
        for name, some in (*groups, ("all", items))
    )
    return Table("items", ("paper", "items", *states), rows)


def _cells(item: Item) -> tuple[str, ...]:
    shown = ", ".join(map(_shown, item.shown_by))
    return (str(item.row), item.place, item.item, item.state, shown or NOTHING, item.note)


def _shown(name: str) -> str:
    return f"[{name}]({relpath(name, 'docs/results')})" if name.startswith("docs/") else f"`{name}`"
