"""Every row of the papers' checklist names something that exists, and says why it is not complete."""

from __future__ import annotations

import shlex
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from diptych.benchmark import Catalogue
from diptych.benchmark.click_methods import web_methods
from diptych.benchmark.papers.costa_pereira import COSTA_PEREIRA
from diptych.benchmark.reporting.checklist import Item, checklist_page, paper_items
from diptych.cli import app
from diptych.data.datasets import dataset_names
from diptych.models import model_classes

ROOT = Path(__file__).parents[2]
PER_PAPER = {"000": 57, "001": 44, "002": 38, "003": 49, "004": 38}


@cache
def names_of(command: str, option: str) -> frozenset[str]:
    """Return what may stand after an option of a command, nothing where anything may."""
    tasks = Catalogue().tasks()
    benchmarked = {method.name for task in tasks.values() for method in task.methods}
    methods = {name for kind in ("features", "items", "clicks") for name in model_classes(kind)}
    known = {
        ("bench run", "task"): tasks,
        ("bench run", "method"): benchmarked,
        ("bench clicks", "method"): web_methods(),
        ("bench costa-pereira", "data"): {task.name for task in COSTA_PEREIRA},
        ("evaluate", "method"): methods,
        ("evaluate", "dataset"): dataset_names(),
    }
    return frozenset(known.get((command, option), ()))


def check_command(line: str) -> None:
    """Raise AssertionError if a command line names a command, option, task or method that does not exist."""
    command: Any = typer.main.get_command(app)
    path: list[str] = []
    words = shlex.split(line)[1:]
    while words and hasattr(command, "get_command"):
        name = words.pop(0)
        command = command.get_command(typer.Context(command), name)
        assert command is not None, f"there is no command {name}"
        path.append(name)
    options = {spelling: each for each in command.params for spelling in each.opts}
    for word, value in pairwise([*words, ""]):
        if not word.startswith("-"):
            continue
        assert word in options, f"{' '.join(path)} has no option {word}"
        known = names_of(" ".join(path), options[word].name)
        for part in value.split(",") if known else ():
            assert any(fnmatchcase(name, part) for name in known), f"{part} is not known to {word}"


def check_name(dotted: str) -> None:
    """Raise AssertionError if nothing is called so."""
    module, _, name = dotted.rpartition(".")
    assert hasattr(import_module(module), name), f"{module} has no {name}"


def check(shown: str) -> None:
    if shown.startswith("docs/"):
        assert (ROOT / shown).is_file(), f"there is no {shown}"
    elif shown.startswith("diptych."):
        check_name(shown)
    else:
        check_command(shown)


def test_every_item_of_the_papers_has_a_row() -> None:
    items = paper_items()
    assert [item.row for item in items] == list(range(1, 227))
    assert Counter(item.paper for item in items) == PER_PAPER


@pytest.mark.parametrize("item", paper_items(), ids=lambda item: str(item.row))
def test_what_shows_an_item_exists(item: Item) -> None:
    for shown in item.shown_by:
        check(shown)
    assert item.shown_by or item.state == "missing"
    assert item.note or item.state == "complete"


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ("diptych bench neural", "no command neural"),
        ("diptych bench run --plots figures", "no option --plots"),
        ("diptych bench run --task standard-nowhere", "standard-nowhere is not known"),
        ("diptych bench run --task flickr8k --method cca,nope", "nope is not known"),
        ("diptych.models.Nope", "has no Nope"),
        ("docs/nope.md", "there is no docs/nope.md"),
    ],
)
def test_what_does_not_exist_is_noticed(shown: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(shown)


def test_the_page_counts_its_rows() -> None:
    complete = sum(item.state == "complete" for item in paper_items())
    page = checklist_page()
    assert f"| all | 226 | {complete} |" in page
    assert page.count("\n| ") >= 226
