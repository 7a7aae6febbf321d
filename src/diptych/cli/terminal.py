"""Where output goes: results to stdout, for pipes; progress and notes to stderr, for people."""

from __future__ import annotations

import os
from typing import IO

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from diptych.cli.result_console import ResultConsole

# A pipe has no width: nothing is wrapped or cut there, so that other programs find whole lines.
_PIPE_WIDTH = 10_000


def results() -> Console:
    """Return the console for results."""
    return _console(stderr=False)


def notes() -> Console:
    """Return the console for progress and remarks."""
    return _console(stderr=True)


def table(title: str = "") -> Table:
    """Return an empty table in the house style."""
    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def print_json(text: str) -> None:
    """Write a JSON document to stdout exactly as it is."""
    typer.echo(text)


def _console(*, stderr: bool) -> Console:
    # Brackets and colons in results are results, never markup.
    console = ResultConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not _is_terminal(console.file) and "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    return console


def _is_terminal(stream: IO[str]) -> bool:
    return not stream.closed and stream.isatty()
