"""Photographs with the retriever that everybody gets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import diptych.data
from diptych import Retriever
from diptych.collection import Collection, Query
from diptych.data import load_dataset
from tests.cli.command_line import Run

N_PHOTOGRAPHS = 16


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
    hits = 0
    with Collection.open(folder / ".diptych") as opened:
        for path, caption in zip(pairs.images, captions, strict=True):
            answers = opened.search(Query.text(caption), 5)
            assert len(answers) == 5
            hits += Path(path).name in [answer.path.name for answer in answers if answer.path]
    # Chance finds 5 of 16.
    assert hits >= 0.7 * N_PHOTOGRAPHS


def test_a_collection_keeps_the_precision_that_it_was_made_with(run: Run, nothing_indexed: Path) -> None:
    """Points of two precisions never meet: whoever names the same search model again gets it as it is stored."""
    folder = nothing_indexed / "photographs"
    folder.mkdir()
    source = Path(diptych.data.__file__).parent / "photographs"
    for name in ("cat.jpg", "coffee.jpg"):
        shutil.copyfile(source / name, folder / name)

    def index(*options: str) -> str:
        result = run("index", folder, *options)
        assert result.exit_code == 0, result.output
        with Collection.open(folder / ".diptych") as opened:
            return opened.status().fingerprint

    rounded = index("--precision", "int8", "--retriever", "default")
    shutil.copyfile(source / "coins.jpg", folder / "coins.jpg")
    assert index() == rounded
    assert index("--precision", "int8") == rounded
    assert index("--retriever", "default") == rounded
    refused = run("index", folder, "--precision", "float32")
    assert refused.exit_code != 0
    plain = index("--precision", "float32", "--retriever", "default")
    assert plain == Retriever.ready_made("default").fingerprint != rounded
    assert index("--retriever", "default") == plain
