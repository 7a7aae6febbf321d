"""The program ``diptych``: its commands, and how it fails."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from diptych._version import __version__
from diptych.errors import DiptychError

_WRONG_REQUEST = 2
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


class _FlagsWithoutTypes:
    """Shows no type of flags in the help, because they take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options as the help shows them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_FlagsWithoutTypes, TyperCommand):
    """A command."""


class Group(_FlagsWithoutTypes, TyperGroup):
    """A group of commands; called without one, it shows its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Ask for help where nothing is asked for."""
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])


class DefaultCommandGroup(Group):
    """Takes what is not a command for arguments of its first one: ``bench wikipedia`` runs ``bench task wikipedia``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command first where it was left out."""
        asks_for_help = bool(args) and all(word in ("-h", "--help") for word in args)
        completes_name = ctx.resilient_parsing and not args
        # Subgroups come before commands.
        default = next(name for name, command in self.commands.items() if not isinstance(command, TyperGroup))
        if not (asks_for_help or completes_name or (args and args[0] in self.commands)):
            args = [default, *args]
        return super().parse_args(ctx, args)


class Program(Group):
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
            if error.errno not in _DISK_FULL:
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
            # Pydantic adds "Value error" to messages of validators.
            message = error.format_message().strip().replace(": Value error, ", ": ")
            _fail(message + hint, getattr(error, "exit_code", _WRONG_REQUEST))
        else:
            sys.exit(status if isinstance(status, int) else 0)


class LazyProgram(Program):
    """The program with all its commands, each of which is made when it is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"commands": _LazyCommands()})


def _discard_stdout() -> None:
    # Python flushes stdout once more when it ends, which must have somewhere to go.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(status)


app = typer.Typer(
    cls=LazyProgram,
    help="Search pictures with words and words with pictures.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


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


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


_COMMANDS = {
    "Your pictures": (
        "index.index search.search serve.serve items.add items.items items.remove upkeep.status items.duplicates "
        "index.read_text index.regions train.train learn.learn learn.history learn.rollback albums.export demo.demo"
    ),
    "Upkeep": "upkeep.verify upkeep.repair upkeep.backup upkeep.restore learn.rehearse",
    "Methods and data": (
        "methods.methods methods.encoders evaluate.evaluate words.words datasets.scenes queries.queries"
    ),
    "": "models.doctor",
}
"""The functions of the commands, by the panel of the help that shows them; without one they are hidden."""

_GROUPS: dict[str, tuple[str, str, str]] = {
    "album": (
        "Your pictures",
        "Albums: items under a title, in an order of your own; also `--filter album:TITLE`.",
        "list=albums.list_albums show=albums.show_album add=albums.add_to_album remove=albums.remove_from_album "
        "rename=albums.rename_album delete=albums.delete_album",
    ),
    "saved": (
        "Your pictures",
        "Saved searches: under names, run again each time they are asked for.",
        "list=albums.list_searches add=albums.save_search run=albums.run_search rename=albums.rename_search "
        "delete=albums.delete_search",
    ),
    "clicks": (
        "Your pictures",
        "The click log of `diptych serve`: its size, export, comparisons of search models, deletion.",
        "status=clicks.status export=clicks.export interleave=clicks.interleave forget=clicks.forget",
    ),
    "models": (
        "Methods and data",
        "Joint models such as CLIP and SigLIP 2: list those that can be fetched, fetch one, check those that are here.",
        "list=models.list_models get=models.get check=models.check update=models.update remove=models.remove "
        "export=models.export",
    ),
    "datasets": (
        "Methods and data",
        "List the data sets, show one (`diptych datasets DATASET`), or download one.",
        "list=datasets.datasets get=datasets.get",
    ),
    "bench": (
        "Methods and data",
        "Run one benchmark by its name (`diptych bench wikipedia`), or methods on many tasks (`diptych bench run`).",
        "task=studies.bench run=run.bench_run diff=run.bench_diff pack=run.bench_pack report=run.bench_report "
        "reproduction=run.bench_reproduction hashing=studies.bench_hashing neural=studies.bench_neural "
        "clicks=studies.bench_clicks costa-pereira=studies.bench_costa_pereira",
    ),
}
"""Groups of commands: the panel of the help, what they are for, and their commands with the functions."""

_TREC = "Rankings as run and qrels files, which trec_eval, ranx and ir_measures read and write."
_DEFAULT_COMMANDS = ("datasets", "bench")


class _LazyCommands(Mapping[str, Any]):
    """The commands of the program by name: importing all of them takes its time."""

    def __init__(self) -> None:
        functions = [(panel, name) for panel, names in _COMMANDS.items() for name in names.split()]
        self._panels = {name.partition(".")[2].replace("_", "-"): (panel, name) for panel, name in functions}

    def __iter__(self) -> Iterator[str]:
        return iter((*self._panels, *_GROUPS))

    def __len__(self) -> int:
        return len(self._panels) + len(_GROUPS)

    def __getitem__(self, name: str) -> Any:
        return _group(name) if name in _GROUPS else _command(name, *self._panels[name])


@cache
def _command(name: str, panel: str, function: str) -> Any:
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=Command, rich_help_panel=panel, hidden=not panel)(_function("commands", function))
    return typer.main.get_command(alone)


@cache
def _group(name: str) -> Any:
    panel, summary, commands = _GROUPS[name]
    package = "bench" if name == "bench" else "commands"
    cls = DefaultCommandGroup if name in _DEFAULT_COMMANDS else Group
    group = typer.Typer(cls=cls, name=name, help=summary, add_completion=False)
    for command in commands.split():
        group.command(command.partition("=")[0], cls=Command)(_function(package, command.partition("=")[2]))
    if name == "bench":
        trec = typer.Typer(cls=Group, help=_TREC)
        trec.command("export", cls=Command)(_function("bench", "trec.trec_export"))
        trec.command("score", cls=Command)(_function("bench", "trec.trec_score"))
        group.add_typer(trec, name="trec")
    made: Any = typer.main.get_command(group)
    made.rich_help_panel = panel
    return made


def _function(package: str, name: str) -> Callable[..., None]:
    module, _, function = name.partition(".")
    found: Callable[..., None] = getattr(import_module(f"diptych.cli.{package}.{module}"), function)
    return found
