"""Where output goes: results to stdout, for pipes; progress and notes to stderr, for people; documents to files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Column, Table

from diptych.atomic_files import atomic_write
from diptych.errors import InvalidInputError

PIPE_WIDTH = 10_000  # Nothing is wrapped or cut in a pipe, so that other programs find whole lines.
TERMINAL_VARIABLES = ("FORCE_COLOR", "TTY_COMPATIBLE")  # They ask for what terminals get.

ThingT = TypeVar("ThingT")


def results() -> Console:
    """Return the console for results."""
    return _console(stderr=False)


def notes() -> Console:
    """Return the console for progress and remarks."""
    return _console(stderr=True)


def goes_to_a_pipe() -> bool:
    """Return True if results go to a file or another program, as the console for them does."""
    is_plain = not sys.stdout.isatty() and os.environ.keys().isdisjoint(TERMINAL_VARIABLES)
    return is_plain or not results().is_terminal


def print_json(content: Any, indent: int | None = 2) -> None:
    """Write a JSON document to stdout: dataclasses as objects, paths as strings; without ``indent`` it is one line."""
    typer.echo(json.dumps(content, indent=indent, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return dict(value) if isinstance(value, Mapping) else str(value)


def print_outcome(line: str, facts: Any, *, as_json: bool) -> None:
    """Say what a command has done: in a line, or its facts as JSON."""
    if as_json:
        print_json(facts)
    else:
        results().print(line, soft_wrap=True)


def print_listing(
    things: Sequence[ThingT],
    columns: Iterable[str | Column],
    cells: Callable[[ThingT], Iterable[RenderableType]],
    *,
    as_json: bool,
    empty: str = "",
) -> None:
    """Print things as JSON or as the rows of a table; ``empty`` is said where there are none."""
    if as_json:
        print_json(things)
    elif things:
        print_table(columns, map(cells, things), results())
    else:
        results().print(empty)


def table(*columns: str | Column, title: str = "") -> Table:
    """Return an empty table in the house style; a column is a heading, or one of the kinds below."""
    return Table(
        *columns,
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def print_table(
    columns: Iterable[str | Column], rows: Iterable[Iterable[RenderableType]], console: Console, title: str = ""
) -> None:
    """Print rows of cells as a table in the house style."""
    listing = table(*columns, title=title)
    for row in rows:
        listing.add_row(*row)
    console.print(listing)


def bold(heading: str) -> Column:
    """Return a column of names."""
    return Column(heading, no_wrap=True, style="bold")


def whole(heading: str) -> Column:
    """Return a column that is never wrapped."""
    return Column(heading, no_wrap=True)


def folded(heading: str) -> Column:
    """Return a column of long words, such as paths, which are cut where the line ends."""
    return Column(heading, overflow="fold")


def numbers(*headings: str) -> list[Column]:
    """Return columns of numbers."""
    return [Column(heading, justify="right", no_wrap=True) for heading in headings]


def scores(*headings: str) -> list[Column]:
    """Return columns of the numbers that matter most."""
    return [Column(heading, justify="right", no_wrap=True, style="bold") for heading in headings]


def facts_table(facts: Mapping[str, str]) -> Table:
    """Return a table of names and values without headings."""
    listing = table(whole(""), folded(""))
    listing.show_header = False
    for fact, value in facts.items():
        listing.add_row(fact, value)
    return listing


def or_dash(value: float | None, form: str) -> str:
    """Return a number in a form such as ``.4f``, and a dash for one that is not known or not defined.

    >>> or_dash(0.25, ".1f"), or_dash(None, ".1f")
    ('0.2', '–')
    """
    return "–" if value is None or value != value else format(value, form)


def confirm(question: str, *, yes: bool, told: str) -> None:
    """Ask, unless ``yes`` was typed; where nobody can answer, raise an error that begins with what would be done."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInputError(f"{told}; add --yes to do it")
    typer.confirm(question, abort=True, err=True)


class ResultConsole(Console):
    """Prints to a stream that may be closed from the other side, as ``head`` does."""

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to `Program`, where Rich would end the process with an error status."""
        raise BrokenPipeError


def _console(*, stderr: bool) -> Console:
    # Brackets and colons in results are results, never markup.
    console = ResultConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    is_terminal = not console.file.closed and console.file.isatty()
    if not is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says about an unwritable ``path`` into one clear error."""
    try:
        yield
    except OSError as error:
        raise InvalidInputError(f"cannot write {path}: {error.strerror or error}; choose another place") from error


def check_writable_file(path: Path) -> None:
    """Raise before any work is done when no file can be written at ``path``."""
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; name a file in it, such as {path / 'results.json'}")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(13, "no permission")


def check_folder(path: Path) -> None:
    """Make the folder ``path``, or raise before any work is done."""
    if path.exists() and not path.is_dir():
        raise InvalidInputError(f"{path} is a file; name a folder")
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` so that the file appears whole or not at all."""
    with writing(path), atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8")
