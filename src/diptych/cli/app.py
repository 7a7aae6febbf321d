"""The program ``diptych``: its commands, each a name and a line of help until it is used, and how it fails."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from enum import Enum
from functools import cache, cached_property, partial
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from diptych import own_process
from diptych._version import __version__
from diptych.errors import DiptychError


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Return parameters whose flags show no type in the help: nobody types a value after them."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return take_plain_arguments(_without_types_of_flags(super().get_params(ctx)))


class LazyCommand(TyperCommand):
    """Stands for a function of the command line, ``module:function`` under ``diptych.cli``, until it is called."""

    def __init__(self, name: str, source: str, summary: str, panel: str | None = None) -> None:
        super().__init__(name, help=summary, rich_help_panel=panel)
        self._source = source

    @cached_property
    def loaded(self) -> Any:
        """The command itself."""
        module, _, function = self._source.partition(":")
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(self.name, cls=_Command)(getattr(import_module(f"diptych.cli.{module}"), function))
        return get_command(alone)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the command itself."""
        return self.loaded.make_context(info_name, args, parent=parent, **extra)


class LazyGroup(TyperGroup):
    """A group of commands; called without one, it explains itself."""

    def __init__(self, *, lazy: Iterable[TyperCommand | TyperGroup] = (), **options: Any) -> None:
        super().__init__(**options)
        self.commands.update({str(command.name): command for command in lazy})

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options as the help shows them."""
        return take_plain_arguments(_without_types_of_flags(super().get_params(ctx)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Ask for help where nothing is asked for."""
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])


class DefaultCommandGroup(LazyGroup):
    """Takes what is not a command for arguments of its first one: ``bench wikipedia`` runs ``bench task wikipedia``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command first where it was left out."""
        asks_for_help = bool(args) and all(word in ("-h", "--help") for word in args)
        completes_name = ctx.resilient_parsing and not args
        if not (asks_for_help or completes_name or (args and args[0] in self.commands)):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


_WITH_DEFAULT = ("bench", "datasets")


@cache
def lazy_commands() -> tuple[TyperCommand | TyperGroup, ...]:
    """Return the commands and groups of ``commands.tsv``; a line there without a function is a group."""
    lines = Path(__file__).with_name("commands.tsv").read_text(encoding="utf-8").splitlines()[1:]
    members: dict[str, list[TyperCommand | TyperGroup]] = {}
    # From the last: the commands of a group come after it.
    for panel, words, source, summary in reversed([line.split("\t") for line in lines]):
        group, _, name = words.rpartition(" ")
        if source:
            command: TyperCommand | TyperGroup = LazyCommand(name, source, summary, panel or None)
        else:
            kind = DefaultCommandGroup if name in _WITH_DEFAULT else LazyGroup
            command = kind(name=name, help=summary, rich_help_panel=panel or None, lazy=members[words])
        members.setdefault(group, []).insert(0, command)
    return tuple(members[""])


_WRONG_REQUEST = 2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


class CommandGroup(LazyGroup):
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
            # Pydantic says so of itself.
            said = error.format_message().strip().replace(": Value error, ", ": ")
            _fail(said + hint, getattr(error, "exit_code", _WRONG_REQUEST))
        else:
            sys.exit(status if isinstance(status, int) else 0)


def _discard_stdout() -> None:
    # Python flushes stdout once more when it ends, which must have somewhere to go.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(status)


class Program(CommandGroup):
    """All commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, lazy=lazy_commands())


app = typer.Typer(
    cls=Program,
    help="Search pictures with words and words with pictures.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the program on the arguments of the process; results go to stdout, everything else to stderr."""
    own_process.claim()
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


_MOST_DIGITS = 9


def take_plain_arguments(parameters: list[Any]) -> list[Any]:
    """Return the parameters of a command, which take what is plainly right as it is.

    That is: defaults, words, whole numbers, choices as they are spelt, and paths that can be read. Newer versions of
    Typer hand every argument to Pydantic, also one that nobody gave. Importing that takes longer than a search that a
    service answers. What is not plainly right goes there still, and what is wrong is refused in its words.
    """
    for parameter in parameters:
        # Older versions convert by themselves, without importing anything.
        if hasattr(parameter, "type_descriptor") and "process_value" not in vars(parameter):
            parameter.process_value = partial(_processed, parameter, parameter.process_value)
    return parameters


def _processed(parameter: Any, check: Any, ctx: Any, value: Any) -> Any:
    try:
        taken = _taken(parameter, value)
    except (_NotPlainError, AttributeError):
        # So does a version of Typer that describes its parameters in another way.
        return check(ctx, value)
    return taken if parameter.callback is None else parameter.callback(ctx, parameter, taken)


class _NotPlainError(Exception):
    """Says that an argument has to be looked at more closely."""


def _taken(parameter: Any, value: Any) -> Any:
    described = parameter.type_descriptor
    is_many = parameter.multiple or parameter.nargs == -1
    if described.parameter_info.parser is not None or (parameter.required and parameter.value_is_missing(value)):
        raise _NotPlainError
    if value is None:
        return () if is_many else None
    if not is_many:
        return _plain(described.annotation, described.parameter_info, value)
    if described.annotation == list[str] and not isinstance(value, str):
        return [_plain(str, described.parameter_info, each) for each in value]
    raise _NotPlainError


def _plain(kind: Any, about: Any, value: Any) -> Any:
    """Return a value as the kind that is asked for, or raise."""
    if type(value) is kind and kind is not Path:
        return value
    if type(value) is str:
        if kind is int and value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
            number = int(value)
            if (about.min is None or number >= about.min) and (about.max is None or number <= about.max):
                return number
        elif isinstance(kind, type) and issubclass(kind, Enum):
            for member in kind:
                if member.value == value:
                    return member
        elif kind is Path and _is_any_path(about) and (os.access(value, os.R_OK) or not os.path.lexists(value)):
            return Path(value)
    raise _NotPlainError


def _is_any_path(about: Any) -> bool:
    """Say whether a path is asked for that can be read or is not there, and nothing else of it."""
    asks_more = about.exists or about.writable or about.resolve_path or about.allow_dash or about.path_type
    return bool(about.file_okay and about.dir_okay and not asks_more)
