from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from diptych import __version__
from diptych.cli import app
from tests.cli.command_line import Program, Run


def test_version_and_help(program: Program) -> None:
    assert program("--version").stdout == f"diptych {__version__}\n"
    shown = program("--help")
    assert shown.returncode == 0
    for command in ("methods", "datasets", "evaluate", "bench", "album"):
        assert command in shown.stdout


def test_asking_nothing_shows_the_help(run: Run) -> None:
    assert "evaluate" in run().stdout


@pytest.mark.parametrize("words", ["models", "bench trec"])
def test_a_group_without_a_command_explains_itself(run: Run, words: str) -> None:
    shown = run(*words.split())
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert f"Usage: diptych {words} " in shown.stdout
    assert "export" in shown.stdout


def all_commands(group: Any) -> Iterator[TyperCommand]:
    context = typer.Context(group)
    for command in (group.get_command(context, name) for name in group.list_commands(context)):
        if isinstance(command, TyperGroup):
            yield from all_commands(command)
        else:
            yield command


def test_help_speaks_plainly() -> None:
    """The words of the inside stand in the glossary; where an option has one in its name, its help says what it is."""
    words = re.compile(
        r"\banew\b|forget it|speaks? (most )?for|cut-off|\bpoints?\b"
        r"|(?<!golden )(?<!search model \()(?<!-)\bretrievers?\b"
    )
    said = [
        text
        for command in all_commands(get_command(app))
        for text in (command.help, *(getattr(parameter, "help", None) for parameter in command.params))
        if text and words.search(text.replace("search models (", "search model ("))
    ]
    assert said == []


def test_every_command_can_answer_in_json() -> None:
    without = [
        command.name
        for command in all_commands(get_command(app))
        if not any("--json" in parameter.opts for parameter in command.params)
    ]
    # It speaks a protocol on standard output.
    assert without == ["mcp"]


@pytest.mark.parametrize(
    ("typed", "completions"),
    [
        ("diptych se", {"search", "serve"}),
        ("diptych bench ", {"run", "diff", "pack", "report", "pages", "clicks", "costa-pereira", "trec"}),
        ("diptych bench trec e", {"export"}),
        ("diptych search --tar", {"--target"}),
        ("diptych search --target t", {"texts"}),
        ("diptych index album --retriever s", {"strong"}),
        ("diptych evaluate --method kc", {"kcca"}),
        ("diptych evaluate --dataset wiki", {"wikipedia"}),
    ],
)
def test_a_shell_completes_what_is_typed(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, completions: set[str]
) -> None:
    monkeypatch.setenv("_DIPTYCH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    shown = set(run().stdout.split())
    assert completions <= shown
    assert all(word.startswith(typed.split(" ")[-1]) for word in shown)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = run("--show-completion", shell)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "_DIPTYCH_COMPLETE" in shown.stdout


def test_flags_take_no_value_in_the_help(run: Run) -> None:
    shown = "".join(run(*words.split()).stdout for words in ("--help", "bench --help", "search --help", "models -h"))
    assert "--exact" in shown
    assert "bool" not in shown


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("methods scmm", "did you mean 'scm'"),
        ("datasets show wikipedai", "did you mean 'wikipedia'"),
        ("evaluate -d scenes -m kca", "did you mean 'kcca'"),
        ("evaluate -d scene -m cca", "did you mean 'scenes'"),
        ("evaluate -d scenes -m scm -p metrc=cosine", "parameter of scm 'metrc'; did you mean 'metric'"),
        ("evaluate -d scenes -m scm -p metric=pearsn", "space 'pearsn'; did you mean 'pearson'"),
        ("evaluate -d scenes -m scm -p correlation=kca", "did you mean 'kcca'"),
        ("evaluate -d scenes -m cca --dataset-option n_trian=9", "did you mean 'n_train'"),
        ("evaluate -d scenes -m cca --dataset-option n_train=few", "takes int, got 'few'"),
        ("evaluate -d scenes -m cca -p C", "--param takes name=value"),
        ("evaluate -d scenes -m cca -p a=1 -p a=2", "sets 'a' twice"),
        ("evaluate -d scenes -m scm -p correlation__n_components=3", "give correlation=cca"),
        ("evaluate -d scenes -m scm -p C__x=3", "'C' is not a method"),
        ("evaluate -d scenes -m scm -p correlation=3", "takes the name of a method"),
        ("evaluate -d scenes -m sm --tune C=3", "the choices of 'C' must be a list such as [1, 10]"),
        ("evaluate -d scenes -m sm --tune D=[3]", "unknown parameter of sm 'D'"),
        ("evaluate -d scenes -m sm --images l3", "l3"),
        ("index --precision tiny .", "for '--precision': 'tiny' is not one of"),
        ("evaluate -d scenes", "--method"),
        ("evaluat", "evaluate"),
    ],
)
def test_a_mistake_costs_one_line_and_status_2(run: Run, words: str, hint: str) -> None:
    result = run(*words.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert hint in result.stderr


def test_the_real_program_fails_in_one_line_without_a_traceback(program: Program) -> None:
    result = program("evaluate", "--dataset", "wikipedia", "--method", "scm", DIPTYCH_DATA="/nowhere")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "/nowhere/wikipedia" in result.stderr
    assert "Traceback" not in result.stderr


# One process that has imported everything, and a child of it for each command.
RUN_EACH = """
import os, sys
import diptych.cli, diptych.models
for line in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        sys.argv[1:] = line.split()
        diptych.cli.main()
    print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr, flush=True)
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_costs_one_line() -> None:
    commands = ("--version", "methods", "methods --json", "datasets")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", RUN_EACH, *commands], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 0
    message = r"error: the output cannot be written: [^\n]+\nstatus 1\n"
    assert re.fullmatch(message * len(commands), done.stderr), done.stderr


def test_pipes_get_whole_lines_and_no_colour(program: Program) -> None:
    """A pipe has no width: every method is one line, nothing is cut or wrapped, and nothing is coloured."""
    from diptych.models import model_classes

    lines = program("methods").stdout.splitlines()
    for name, cls in model_classes().items():
        assert any(line.startswith(f"{name} ") and cls.when_to_use in line for line in lines)
    assert not any("\x1b" in line or "…" in line for line in lines)


def test_a_narrow_terminal_cuts_no_name(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = run("methods").stdout
    assert "linear-regression" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_output_without_unicode_ends_well(program: Program) -> None:
    result = program("methods", "scm", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "Costa Pereira" in result.stdout
