from __future__ import annotations

import re
from pathlib import Path

import pytest

from diptych.cli.console.paths import last_collection, remember
from diptych.data import cache_folder
from tests.cli.command_line import Run


def test_scenes_are_indexed_and_searched_and_kept(
    run: Run, nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main job on a machine that has nothing: good answers without any data or network."""
    # The encoder reads 64 pixels a side; painting more takes most of the time and changes no answer.
    monkeypatch.setattr("diptych.cli.commands.demo._SCENE_SIZE", 96)
    result = run("demo", "--data", "scenes", "--no-page")
    assert result.exit_code == 0
    assert "Generated scenes: 512 pictures" in result.stdout
    for words, needed in (("a house in the snow", "house|cottage|snow|winter"), ("a red car", "car|automobile|red")):
        part = result.stdout.partition(f"diptych search '{words}' -k 3")[2].partition("$ ")[0]
        rows = re.findall(r"^[123] +\d+ %.*$", part, re.MULTILINE)
        assert len(rows) == 3
        assert sum(bool(re.search(needed, row)) for row in rows) >= 2
    assert "diptych index FOLDER" in result.stdout
    assert last_collection() == (cache_folder() / "demo" / "scenes").resolve()
    own = nothing_indexed / "own"
    own.mkdir()
    (own / "collection.json").write_text("{}")
    remember(own)
    # What a former version left in the cache is brought to the present format without a word.
    layout = cache_folder() / "demo" / "scenes" / "collection.json"
    layout.write_text(layout.read_text().replace('"format_version": 3', '"format_version": 2'))
    again = run("demo", "--data", "scenes", "--no-page")
    assert "learning" not in again.stderr
    # A person's own collection stays the one that commands mean, so the examples name theirs.
    assert last_collection() == own
    option = f" --collection {cache_folder() / 'demo' / 'scenes'}"
    assert again.stdout.replace(option, "") == result.stdout


def test_photographs_that_are_not_here_cost_one_line(
    run: Run, nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(nothing_indexed))
    result = run("demo", "--data", "pascal")
    assert result.exit_code == 2
    assert "diptych datasets pascal_sentence" in result.stderr
    assert result.stderr.count("\n") == 1
