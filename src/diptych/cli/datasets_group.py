"""``diptych datasets``: a list by itself, and the command ``get``."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from diptych.cli.datasets import datasets
from diptych.cli.datasets_get import get

_LIST = "list"
_HELP = ("-h", "--help")


class DatasetsGroup(TyperGroup):
    """Takes what is not a command for a question about data sets.

    ``diptych datasets`` lists them all and ``diptych datasets scenes`` shows one, as if ``list`` had been typed.
    """

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Put the name of the command first where it was left out."""
        words = [word for word in arguments if not word.startswith("-")]
        asks_for_help = not words and any(word in _HELP for word in arguments)
        if not asks_for_help and (not words or words[0] not in self.commands):
            arguments = [_LIST, *arguments]
        return super().parse_args(context, arguments)


datasets_app = typer.Typer(
    cls=DatasetsGroup,
    help="List the data sets, show one (`diptych datasets DATASET`), or get one that is public by address.",
)
datasets_app.command(_LIST)(datasets)
datasets_app.command("get")(get)
