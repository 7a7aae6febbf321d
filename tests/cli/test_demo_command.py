from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diptych.cli.commands.demo import choose_demo
from diptych.cli.console.progress import Stages
from diptych.retriever import Retriever, precision
from tests.cli.command_line import Run


def test_photographs_come_with_the_package(nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any data set shows real photographs, with captions to find and credits to read."""
    monkeypatch.setenv("DIPTYCH_DATA", str(nothing_indexed))
    shown = choose_demo("auto")
    assert shown.name == "photographs"
    records = shown.make_records()
    assert len(records) >= 40
    for record in records:
        assert Path(record.path).parent == shown.root
        assert record.captions
        assert set(record.metadata or {}) == {"author", "licence"}
    assert choose_demo("photographs").name == shown.name


@pytest.mark.usefixtures("nothing_indexed")
def test_photographs_are_encoded_in_what_the_machine_does_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `diptych index` does; a demonstration keeps the precision that it was made with."""
    shown = replace(choose_demo("photographs"), make_records=list)
    monkeypatch.setattr(precision, "MIN_PICTURES", 0)
    for has_instructions in (True, False):
        monkeypatch.setattr(precision, "multiplies_bytes", lambda has=has_instructions: has)
        with shown.open(Stages(quiet=True)) as collection:
            retriever = collection.retriever
            assert isinstance(retriever, Retriever)
            assert precision.precision_of(retriever.image_encoder_) == "int8"


def test_photographs_that_are_not_here_cost_one_line(
    run: Run, nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(nothing_indexed))
    result = run("demo", "--data", "flickr8k")
    assert result.exit_code == 2
    assert "the data set 'flickr8k' is not complete on this machine" in result.stderr
    assert result.stderr.count("\n") == 1
