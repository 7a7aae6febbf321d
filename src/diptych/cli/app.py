"""The program ``diptych`` and its commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated

import typer

from diptych import __version__
from diptych.cli.add import add
from diptych.cli.bench_group import bench_app
from diptych.cli.clicks import clicks_app
from diptych.cli.command_group import CommandGroup
from diptych.cli.datasets_group import datasets_app
from diptych.cli.demo import demo
from diptych.cli.duplicates import duplicates
from diptych.cli.encoders import encoders
from diptych.cli.evaluate import evaluate
from diptych.cli.export import export
from diptych.cli.index import index
from diptych.cli.learn import learn
from diptych.cli.methods import methods
from diptych.cli.queries import queries
from diptych.cli.remove import remove
from diptych.cli.rollback import rollback
from diptych.cli.scenes import scenes
from diptych.cli.search import search
from diptych.cli.serve import serve
from diptych.cli.status import status
from diptych.cli.train import train
from diptych.cli.words import words

# A command imports what it needs when it runs, so that asking for help stays instant.
app = typer.Typer(
    cls=CommandGroup,
    help="Search pictures with words and words with pictures.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Your pictures": (index, search, serve, add, remove, status, duplicates, train, learn, rollback, export, demo),
    "Methods and data": (methods, encoders, evaluate, words, scenes, queries),
}
for panel, commands in _COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(bench_app, name="bench", rich_help_panel="Methods and data")
app.add_typer(clicks_app, name="clicks", rich_help_panel="Your pictures")
app.add_typer(datasets_app, name="datasets", rich_help_panel="Methods and data")


def main() -> None:
    """Run the program on the arguments of the process; results go to stdout, everything else to stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal without Unicode shows a question mark instead of ending the run.
            stream.reconfigure(errors="replace")
    app(prog_name="diptych")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"diptych {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
