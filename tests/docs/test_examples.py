"""Runs the examples of every page: ``python`` and ``pycon`` blocks, and ``$ diptych`` lines of ``console`` blocks.

The blocks of a page run in order, in one namespace and one empty folder. ``<!-- needs-data -->`` on the line before a
block keeps it for machines that have the data; such blocks run by themselves, after one another.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from diptych.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?P<data><!-- needs-data -->\n\n?)?```(?P<language>python|pycon|console)\b[^\n]*\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Terminal:
    """Runs the commands of a page here, where all is imported; the first one as the real program if that is wanted."""

    def __init__(self, starts_program: bool = False) -> None:
        self._starts_program = starts_program

    def run(self, command: str) -> None:
        words = shlex.split(command, comments=True)
        # What a plugin adds would outlive its command.
        is_program = self._starts_program or "--plugin" in words
        self._starts_program = False
        status, output = run_program(words) if is_program else run_here(words)
        assert status == 0, f"`{command}` failed:\n{output}"


def run_program(words: list[str]) -> tuple[int, str]:
    # The environment under test comes first, whether or not it has been activated.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PATH": path})
    return run.returncode, run.stdout + run.stderr


def run_here(words: list[str]) -> tuple[int, str]:
    run = CliRunner().invoke(app, words[1:], prog_name=words[0])
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        raise run.exception
    return run.exit_code, run.output


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    needs_data: bool

    def run(self, page: Path, namespace: dict[str, Any], terminal: Terminal) -> None:
        if self.language == "python":
            # Leading newlines make a traceback point at the page's own line.
            exec(compile("\n" * self.line + self.code, str(page), "exec"), namespace)
        elif self.language == "pycon":
            check_session(self, page, namespace)
        else:
            for command in commands(self.code):
                terminal.run(command)


def blocks(text: str) -> list[Block]:
    return [
        Block(match["language"], match["code"], text[: match.start("code")].count("\n"), match["data"] is not None)
        for match in BLOCK.finditer(text)
    ]


def commands(code: str) -> Iterator[str]:
    """Yield the ``diptych`` commands of a terminal session, with lines continued by a backslash joined."""
    for line in code.replace("\\\n", " ").splitlines():
        if line.startswith("$ diptych"):
            yield line.removeprefix("$ ")


def check_session(block: Block, page: Path, namespace: dict[str, Any]) -> None:
    session = doctest.DocTestParser().get_doctest(block.code, {}, page.name, str(page), block.line)
    session.globs = namespace
    complaints: list[str] = []
    doctest.DocTestRunner(verbose=False).run(session, out=complaints.append, clear_globs=False)
    assert not complaints, "".join(complaints)


def pages() -> Iterator[Any]:
    for page in PAGES:
        found = blocks(page.read_text(encoding="utf-8"))
        name = page.relative_to(ROOT).as_posix()
        if any(not block.needs_data for block in found):
            yield pytest.param(page, False, id=name)
        if any(block.needs_data for block in found):
            yield pytest.param(page, True, id=f"{name} with data", marks=pytest.mark.data)


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize(("page", "with_data"), list(pages()))
def test_examples_of_the_page_run(page: Path, with_data: bool) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    # One page proves that the program starts; for every other page that would take seconds and prove nothing new.
    terminal = Terminal(starts_program=page.name == "README.md" and not with_data)
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.needs_data == with_data:
            block.run(page, namespace, terminal)


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "docs" / "tutorials" / "own-model.md"], ids=lambda page: page.name
)
def test_first_steps_can_be_repeated_where_they_were_taken(page: Path) -> None:
    """Whoever copies them a second time finds the files of the first time in the folder."""
    first = next(block for block in blocks(page.read_text(encoding="utf-8")) if "write_folder(" in block.code)
    for _ in range(2):
        first.run(page, {"__name__": "__main__"}, Terminal())


def test_blocks_are_found_with_language_line_and_marker() -> None:
    text = "# Page\n\n```python\nx = 1\n```\n\n```text\nno\n```\n\n<!-- needs-data -->\n```console\n$ diptych\n```\n"
    assert blocks(text) == [Block("python", "x = 1\n", 3, False), Block("console", "$ diptych\n", 12, True)]


def test_only_diptych_commands_run_and_long_ones_are_joined() -> None:
    session = "$ make run\n$ diptych bench \\\n  scenes\nsome output\n"
    assert [command.split() for command in commands(session)] == [["diptych", "bench", "scenes"]]


def test_a_wrong_example_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        Block("python", "1 / 0\n", 0, False).run(Path("page.md"), {}, Terminal())
    with pytest.raises(AssertionError, match="Expected"):
        Block("pycon", ">>> 1 + 1\n3\n", 0, False).run(Path("page.md"), {}, Terminal())
    for starts_program, command in ((True, "false"), (False, "diptych methods no-such-method")):
        with pytest.raises(AssertionError, match="failed"):
            Terminal(starts_program).run(command)


def test_no_page_waits_for_its_content() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        left = re.findall(r"^[A-Z]+(?:_[A-Z]+)*$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert left == [], f"{page.relative_to(ROOT)} holds the placeholder {left[0]}"
