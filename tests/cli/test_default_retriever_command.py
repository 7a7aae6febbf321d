"""Photographs with the retriever that everybody gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from diptych.cli import app
from diptych.data import load_dataset
from tests.cli.command_line import Run

N_PHOTOGRAPHS = 24


@pytest.mark.data("flickr8k")
def test_captions_find_their_photographs_without_training(run: Run, nothing_indexed: Path) -> None:
    """One command makes a folder searchable; a caption that the program never saw finds its photograph."""
    pairs = load_dataset("flickr8k").test.select(range(N_PHOTOGRAPHS))
    folder = nothing_indexed / "photographs"
    folder.mkdir()
    for path in pairs.images:
        (folder / Path(path).name).symlink_to(path)
    assert run("index", folder).exit_code == 0
    captions = [pairs.texts[pairs.owners.tolist().index(row)] for row in range(N_PHOTOGRAPHS)]
    asked = "".join(f'"{caption}"\n' for caption in captions)
    found = CliRunner().invoke(app, ["search", "--all", "--format", "jsonl", "-k", "5"], input=asked)
    assert found.exit_code == 0
    answers = [json.loads(line) for line in found.stdout.splitlines()]
    assert len(answers) == 5 * N_PHOTOGRAPHS
    names = [Path(answer["path"]).name for answer in answers]
    hits = sum(Path(path).name in names[5 * row : 5 * row + 5] for row, path in enumerate(pairs.images))
    # Chance finds 5 of 24.
    assert hits >= 0.7 * N_PHOTOGRAPHS
