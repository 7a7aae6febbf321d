"""Arguments that are plainly right are taken as they are, and become what Typer itself makes of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from diptych.cli.app import take_plain_arguments


class Colour(StrEnum):
    RED = "red"
    BLUE = "light-blue"


class PlainCommand(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return take_plain_arguments(super().get_params(ctx))


def doubled(value: int) -> int:
    return 2 * value


def outcome(words: list[str], kind: type[TyperCommand], place: Path) -> tuple[int, str, Any]:
    """Return exit status and mistakes of a command with options of every kind, and the values that it got."""
    given: dict[str, Any] = {}
    program = typer.Typer(add_completion=False)

    @program.command(cls=kind)
    def command(
        words: Annotated[list[str] | None, typer.Argument()] = None,
        text: Annotated[str | None, typer.Option()] = None,
        number: Annotated[int, typer.Option(min=1, max=20)] = 10,
        clamped: Annotated[int, typer.Option(min=1, max=20, clamp=True)] = 10,
        share: Annotated[float | None, typer.Option(min=0, max=1)] = None,
        colour: Annotated[Colour, typer.Option()] = Colour.RED,
        any_case: Annotated[Colour | None, typer.Option(case_sensitive=False)] = None,
        folder: Annotated[Path, typer.Option()] = place,
        file: Annotated[Path | None, typer.Option(exists=True, dir_okay=False)] = None,
        whole: Annotated[Path | None, typer.Option(resolve_path=True)] = None,
        several: Annotated[list[Path] | None, typer.Option()] = None,
        flag: Annotated[bool, typer.Option("--flag/--no-flag")] = False,
        parsed: Annotated[str | None, typer.Option(parser=str.upper)] = None,
        called_back: Annotated[int, typer.Option(callback=doubled)] = 4,
    ) -> None:
        given.update(locals())

    result = CliRunner().invoke(program, words)
    kinds = {name: (type(value), value) for name, value in given.items() if name not in ("given", "kind")}
    return result.exit_code, result.stderr, kinds


@pytest.mark.parametrize(
    "words",
    [
        "",
        "a dog",
        "a dog --text cat --number 7 --share 0.5",
        "--number 1 --number 20",
        "--number 0",
        "--number 21",
        "--number +5",
        "--number 5.0",
        "--number 1_0",
        "--number ٣",
        "--number seven",
        "--number 99999999999999999999",
        "--clamped 500",
        "--clamped 0",
        "--share 2",
        "--colour light-blue",
        "--colour BLUE",
        "--colour Red",
        "--any-case RED",
        "--folder PLACE",
        "--folder PLACE/none",
        "--folder PLACE/broken",
        "--file PLACE",
        "--file PLACE/none",
        "--file PLACE/file",
        "--whole PLACE/broken",
        "--several PLACE --several PLACE/none",
        "--flag",
        "--no-flag",
        "--parsed small",
        "--called-back 21",
        "--called-back many",
        "--nonsense",
    ],
)
def test_arguments_become_what_typer_makes_of_them(words: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    given = words.replace("PLACE", str(tmp_path)).split()
    assert outcome(given, PlainCommand, tmp_path) == outcome(given, TyperCommand, tmp_path)


def test_what_must_be_given_is_asked_for() -> None:
    program = typer.Typer(add_completion=False)

    @program.command(cls=PlainCommand)
    def command(words: Annotated[list[str], typer.Argument()], text: Annotated[str, typer.Option()]) -> None:
        assert (words, text) == (["a"], "b")

    assert CliRunner().invoke(program, ["a", "--text", "b"]).exit_code == 0
    for given in (["a"], ["--text", "b"]):
        result = CliRunner().invoke(program, given)
        assert result.exit_code == 2
        assert "Missing" in result.stderr


def test_parameters_that_are_described_in_another_way_are_checked() -> None:
    class Parameter:
        type_descriptor = object()
        callback = None

        def process_value(self, ctx: Any, value: Any) -> tuple[Any, Any]:
            return ctx, value

    (parameter,) = take_plain_arguments([Parameter()])
    assert parameter.process_value("context", "7") == ("context", "7")
