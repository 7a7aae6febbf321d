from __future__ import annotations

import errno
import os

import pytest
import typer

from diptych.cli.app import Program


def command_that_raises(error: Exception) -> typer.Typer:
    app = typer.Typer(cls=Program)

    @app.command()
    def write() -> None:
        raise error

    @app.callback()
    def group() -> None:
        """Make it a group of one."""

    return app


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_place_that_may_not_be_written_is_one_line_that_names_it(
    code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = OSError(code, os.strerror(code), "there/learning.jsonl")
    with pytest.raises(SystemExit) as left:
        command_that_raises(refusal)(["write"])
    told = capsys.readouterr().err
    assert left.value.code == 1
    assert told == f"error: there/learning.jsonl: {os.strerror(code)}; let this user read and write there\n"


def test_other_errors_of_the_system_keep_their_traceback() -> None:
    with pytest.raises(OSError, match="odd"):
        command_that_raises(OSError(errno.EBADF, "odd", "there"))(["write"])
