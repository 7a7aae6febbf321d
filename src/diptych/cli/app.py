"""The program ``diptych``: its commands, and how it fails."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from diptych._version import __version__
from diptych.cli.options import Group
from diptych.errors import DiptychError

WRONG_REQUEST = 2
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)

COMMANDS = {
    "Your pictures": "index.index search.search serve.serve items.add items.remove albums.album upkeep.status "
    "demo.demo",
    "Look, keep and share": "items.duplicates albums.saved export.export mcp.mcp",
    "Teach": "train.train learn.learn learn.history learn.rollback learn.rehearse models.models",
    "Keep safe": "upkeep.verify upkeep.repair upkeep.backup upkeep.restore doctor.doctor",
    "Methods and data": "methods.methods methods.encoders datasets.datasets evaluate.evaluate bench.bench",
}
"""The commands as ``module.function`` or ``module.group``, by the panel of the help that shows them."""

_PLACES = {place.partition(".")[2]: (panel, place) for panel, places in COMMANDS.items() for place in places.split()}


class Program(Group):
    """The program: imports a command when it is asked for, and turns foreseen errors into one line on stderr.

    Foreseen are every `DiptychError` and every mistake in the arguments, with exit status 2, and with exit status 1 a
    full disk and places where this user may not write. Anything else is a defect and keeps its traceback.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Typer suggests these names for a mistyped one.
        self.commands: dict[str, Any] = {**dict.fromkeys(_PLACES), **self.commands}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command of that name."""
        if cmd_name not in _PLACES:
            return super().get_command(ctx, cmd_name)
        panel, place = _PLACES[cmd_name]
        module, _, name = place.partition(".")
        package = "diptych.cli" if module == "bench" else "diptych.cli.commands"
        found = getattr(import_module(f"{package}.{module}"), name)
        if isinstance(found, typer.Typer):
            command: Any = typer.main.get_group(found)
        else:
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(found)
            command = typer.main.get_command(alone)
        command.name, command.rich_help_panel = cmd_name, panel
        _hide_types_of_flags(command, ctx)
        return command

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the program itself."""
        return [_without_type(parameter) for parameter in super().get_params(ctx)]

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
            _fail(str(error), WRONG_REQUEST)
        except OSError as error:
            if error.errno in NOT_ALLOWED and error.filename is not None:
                _fail(f"{error.filename}: {error.strerror}; let this user read and write there", 1)
            if error.errno not in DISK_FULL:
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
            _fail(message + hint, getattr(error, "exit_code", WRONG_REQUEST))
        else:
            sys.exit(status if isinstance(status, int) else 0)


def _hide_types_of_flags(command: Any, context: Any) -> None:
    """Show no type of flags in the help of a command or group, because they take no value."""
    for parameter in command.get_params(context):
        _without_type(parameter)
    for inner in getattr(command, "commands", {}).values():
        _hide_types_of_flags(inner, context)


def _without_type(parameter: Any) -> Any:
    if getattr(parameter, "is_flag", False):
        parameter.metavar = ""
    return parameter


def _discard_stdout() -> None:
    # Python flushes stdout once more when it ends, which must have somewhere to go.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(status)


app = typer.Typer(
    cls=Program,
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
