from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from diptych.cli.commands.demo import choose_demo
from diptych.cli.console.paths import last_collection, remember
from diptych.cli.console.progress import Stages
from diptych.cli.options import DemoData
from diptych.collection import Collection
from diptych.data import cache_folder
from diptych.data.datasets.scenes import Scene, make_scene
from diptych.retriever import Retriever, precision
from tests.cli.command_line import Run
from tests.doubles.scene_queries import RECALL_BAR, descriptions, is_right, read_queries

N_SCENES = 256


def test_scenes_are_indexed_and_searched_and_kept(
    run: Run, nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main job on a machine that has nothing: good answers without any data or network."""
    # Half of the scenes, and smaller ones: painting takes most of the time. The benchmark has all of them.
    monkeypatch.setattr("diptych.cli.commands.demo._SCENE_SIZE", 96)
    monkeypatch.setattr("diptych.cli.commands.demo._N_SCENES", N_SCENES)
    result = run("demo", "--data", "scenes", "--no-page")
    assert result.exit_code == 0
    assert f"Generated scenes: {N_SCENES} pictures" in result.stdout
    part = result.stdout.partition("diptych search 'a red car in the city' -k 3")[2].partition("$ ")[0]
    assert len(re.findall(r"^[123] +9\d %.*$", part, re.MULTILINE)) == 3
    assert "diptych index FOLDER" in result.stdout
    assert last_collection() == (cache_folder() / "demo" / "scenes").resolve()
    _check_answers(cache_folder() / "demo" / "scenes")
    own = nothing_indexed / "own"
    own.mkdir()
    (own / "collection.json").write_text("{}")
    remember(own)
    again = run("demo", "--data", "scenes", "--no-page")
    assert "painting" not in again.stderr
    # A person's own collection stays the one that commands mean, so the examples name theirs.
    assert last_collection() == own
    told = json.loads(run("demo", "--data", "scenes", "--json").stdout)
    assert (told["pictures"], [len(found) for found in told["searches"].values()]) == (N_SCENES, [3, 3, 3])
    option = f" --collection {cache_folder() / 'demo' / 'scenes'}"
    assert again.stdout.replace(option, "") == result.stdout


def test_photographs_come_with_the_package(nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any data set shows real photographs, with captions to find and credits to read."""
    monkeypatch.setenv("DIPTYCH_DATA", str(nothing_indexed))
    stages = Stages(quiet=True)
    shown = choose_demo(DemoData.AUTO, stages, everything=False)
    assert shown.name == "photographs"
    records = shown.make_records(stages)
    assert len(records) >= 40
    for record in records:
        assert Path(record.path).parent == shown.root
        assert record.captions
        assert set(record.metadata or {}) == {"author", "licence"}
    assert choose_demo(DemoData.PHOTOGRAPHS, stages, everything=False).name == shown.name


@pytest.mark.usefixtures("nothing_indexed")
def test_photographs_are_encoded_in_what_the_machine_does_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `diptych index` does; a demonstration keeps the precision that it was made with."""
    shown = replace(choose_demo(DemoData.PHOTOGRAPHS, Stages(quiet=True), everything=False), make_records=lambda _: [])
    monkeypatch.setattr(precision, "MIN_PICTURES", 0)
    for has_instructions in (True, False):
        monkeypatch.setattr(precision, "multiplies_bytes", lambda has=has_instructions: has)
        with shown.open(Stages(quiet=True)) as collection:
            retriever = collection.retriever
            assert isinstance(retriever, Retriever)
            assert precision.precision_of(retriever.image_encoder_) == "int8"


def _check_answers(folder: Path) -> None:
    """Descriptions find their scenes, and nearly 50 queries what they ask for; the scenes were not seen in training."""
    shown = [make_scene(number) for number in range(N_SCENES)]
    numbers = re.compile(r"scene-(\d+)\.png")

    def found(words: str, k: int) -> list[Scene]:
        answers = collection.search(words, k=k)
        return [shown[int(numbers.search(str(answer.path))[1])] for answer in answers]  # type: ignore[index]

    with Collection.open(folder) as collection:
        queries = [query for query in read_queries() if any(query.is_answered_by(scene) for scene in shown)]
        assert len(queries) >= 45
        assert [query.words for query in queries if not is_right(query, found(query.words, 3), shown)] == []
        some = shown[::8]
        recalled = [scene in found(text, 10) for scene, text in zip(some, descriptions(some), strict=True)]
        assert sum(recalled) / len(some) >= RECALL_BAR
        assert collection.search("a dog").no_good_match


def test_photographs_that_are_not_here_cost_one_line(
    run: Run, nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(nothing_indexed))
    result = run("demo", "--data", "pascal")
    assert result.exit_code == 2
    assert "diptych datasets pascal_sentence" in result.stderr
    assert result.stderr.count("\n") == 1
