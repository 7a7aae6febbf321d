from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Program, Run
from typer.testing import CliRunner, Result

from diptych.cli import app


@pytest.fixture(autouse=True)
def no_given_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def run() -> Run:
    """Run a command inside this process; anything that is not a foreseen error fails the test."""

    def invoke(*words: str | Path) -> Result:
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="diptych")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def program() -> Program:
    """Run the real program in a process of its own, its output piped."""

    def start(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "diptych", *map(str, words)],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            check=False,
        )

    return start
