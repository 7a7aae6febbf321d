"""The program ``diptych``: its commands, the groups of them, and how it fails."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from diptych import own_process
from diptych._version import __version__
from diptych.cli.lazy_commands import LazyGroup, lazy_commands
from diptych.errors import DiptychError

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
            _fail(error.format_message().strip() + hint, getattr(error, "exit_code", _WRONG_REQUEST))
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
