"""The program ``diptych``: its commands, the groups of them, and how it fails."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from diptych._version import __version__
from diptych.cli.bench.clicks import bench_clicks
from diptych.cli.bench.costa_pereira import bench_costa_pereira
from diptych.cli.bench.hashing import bench_hashing
from diptych.cli.bench.neural import bench_neural
from diptych.cli.bench.results import bench_diff, bench_pack, bench_report
from diptych.cli.bench.run import bench_run
from diptych.cli.bench.task import bench
from diptych.cli.bench.trec import bench_trec
from diptych.cli.commands.clicks import clicks_app
from diptych.cli.commands.datasets import datasets, get, scenes
from diptych.cli.commands.demo import demo
from diptych.cli.commands.doctor import doctor
from diptych.cli.commands.encoders import encoders
from diptych.cli.commands.evaluate import evaluate
from diptych.cli.commands.index import index
from diptych.cli.commands.items import add, duplicates, export, remove
from diptych.cli.commands.learn import learn, rollback
from diptych.cli.commands.methods import methods
from diptych.cli.commands.plan import plan
from diptych.cli.commands.queries import queries
from diptych.cli.commands.rehearse import rehearse
from diptych.cli.commands.search import search
from diptych.cli.commands.serve import serve
from diptych.cli.commands.train import train
from diptych.cli.commands.upkeep import backup, migrate, restore, status
from diptych.cli.commands.words import words
from diptych.errors import DiptychError

_WRONG_REQUEST = 2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


class CommandGroup(TyperGroup):
    """Runs a command and turns foreseen errors into one line on stderr and exit status 2.

    Foreseen are every `DiptychError` and every mistake in the arguments, and with exit status 1 a full disk and places
    where this user may not write. Anything else is a defect and keeps its traceback.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a reader who has seen enough, as ``head`` has, is no error."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_stdout()
            return None
        return result

    def main(self, *args: Any, **options: Any) -> Any:
        """Run and leave the process with the command's exit status."""
        try:
            status = super().main(*args, **{**options, "standalone_mode": False})
        except DiptychError as error:
            _fail(str(error), _WRONG_REQUEST)
        except OSError as error:
            if error.errno in _NOT_ALLOWED and error.filename is not None:
                _fail(f"{error.filename}: {error.strerror}; let this user read and write there", 1)
            if error.errno not in _NO_ROOM:
                raise
            _discard_stdout()
            _fail(f"the output cannot be written: {error.strerror}; make room, or write it elsewhere", 1)
        except typer.Abort:
            _fail("stopped", 1)
        except Exception as error:
            # Typer brings its own copy of Click or uses the installed one, depending on its version; what a mistake
            # in the arguments looks like is the same in both.
            if not hasattr(error, "format_message"):
                raise
            is_minus = getattr(error, "option_name", "").strip() == "-"
            hint = "; put -- before words that begin with a minus sign" if is_minus else ""
            _fail(error.format_message().strip() + hint, getattr(error, "exit_code", _WRONG_REQUEST))
        else:
            sys.exit(status if isinstance(status, int) else 0)


def _discard_stdout() -> None:
    # Python flushes stdout once more when it ends, which must have somewhere to go.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(status)


class DefaultCommandGroup(TyperGroup):
    """Takes what is not a command for arguments of its first one: ``bench wikipedia`` runs ``bench task wikipedia``."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Put the name of the command first where it was left out."""
        asks_for_help = bool(arguments) and all(word in ("-h", "--help") for word in arguments)
        if not asks_for_help and (not arguments or arguments[0] not in self.commands):
            arguments = [next(iter(self.commands)), *arguments]
        return super().parse_args(context, arguments)


bench_app = typer.Typer(
    cls=DefaultCommandGroup,
    help="Run one benchmark by its name (`diptych bench wikipedia`), or methods on many tasks (`diptych bench run`).",
)

_BENCH_COMMANDS: dict[str, Callable[..., None]] = {
    "task": bench,
    "run": bench_run,
    "diff": bench_diff,
    "pack": bench_pack,
    "report": bench_report,
    "hashing": bench_hashing,
    "neural": bench_neural,
    "clicks": bench_clicks,
    "costa-pereira": bench_costa_pereira,
}

for name, run in _BENCH_COMMANDS.items():
    bench_app.command(name)(run)

bench_app.add_typer(bench_trec, name="trec")

datasets_app = typer.Typer(
    cls=DefaultCommandGroup, help="List the data sets, show one (`diptych datasets DATASET`), or download one."
)

datasets_app.command("list")(datasets)
datasets_app.command("get")(get)

# A command imports what it needs when it runs, so that asking for help stays instant.
app = typer.Typer(
    cls=CommandGroup,
    help="Search pictures with words and words with pictures.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Your pictures": (index, search, serve, add, remove, status, duplicates, train, learn, rollback, export, demo),
    "Upkeep": (backup, restore, migrate, plan, rehearse, doctor),
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
