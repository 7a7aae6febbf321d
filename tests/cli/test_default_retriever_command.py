"""Photographs with the retriever that everybody gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run

from diptych.data import load_dataset

N_PHOTOGRAPHS = 40


@pytest.mark.data("flickr8k")
def test_captions_find_their_photographs_without_training(run: Run, nothing_indexed: Path) -> None:
    """One command makes a folder searchable; a caption that the program never saw finds its photograph."""
    pairs = load_dataset("flickr8k").test.select(range(N_PHOTOGRAPHS))
    folder = nothing_indexed / "photographs"
    folder.mkdir()
    for path in pairs.images:
        (folder / Path(path).name).symlink_to(path)
    assert run("index", folder).exit_code == 0
    hits = 0
    for row, path in enumerate(pairs.images):
        caption = pairs.texts[pairs.owners.tolist().index(row)]
        found = json.loads(run("search", f'"{caption}"', "--all", "--format", "json", "-k", "5").stdout)
        hits += Path(path).name in [Path(answer["path"]).name for answer in found["answers"]]
    # Chance finds 5 of 40.
    assert hits >= 0.7 * N_PHOTOGRAPHS
