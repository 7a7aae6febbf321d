from __future__ import annotations

import json
from pathlib import Path

import pytest

from diptych import Retriever
from diptych.collection import Collection
from diptych.data import load_dataset
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.models import CCA
from diptych.service.clicks import ClickLog
from tests.cli.command_line import Run, World


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved retriever that reads pictures otherwise than the one of the collection."""
    pairs = load_dataset("scenes", n_train=40, n_test=1, size=32).train
    encoders = {"image_encoder": ColourEdgeHistograms(size=24), "text_encoder": TfidfTopics()}
    made = Retriever(model=CCA(n_components=4), name="other", cache=False, **encoders).fit(pairs, baseline=None)
    folder = tmp_path_factory.mktemp("rehearse") / "other"
    made.save(folder)
    return folder


@pytest.fixture
def world(indexed: World, nothing_indexed: Path) -> World:
    return indexed.copied(nothing_indexed / "pictures")


def test_a_rehearsal_tells_and_changes_nothing(run: Run, world: World, other: Path) -> None:
    with Collection.open(world.collection) as collection:
        before = collection.retrievers()
        ids = [item.id for item in collection][:3]
    with Collection.open(world.collection) as collection, ClickLog(collection.store) as log:
        asked = {"retriever": "r", "fingerprint": "f", "target": "images", "no_good_match": False}
        shown = [(item, place) for place, item in enumerate(ids, start=1)]
        search = log.record_search(query="a red ball", shown=shown, best_probability=0.5, **asked)
        assert search is not None
        log.record_click(search_id=search, item=ids[1], position=2, kind="open")
        log.record_search(query="a blue house", shown=shown, best_probability=0.5, **asked)
    told = run("rehearse", world.pictures, "--retriever", other, "--sample", "30")
    assert told.exit_code == 0
    for words in (
        "30 of 60 pictures, those with captions or clicks first",
        "1 logged query",
        "reciprocal rank",
        '"no good match"',
        "1 logged query has no clicked picture here",
        "Nothing was changed; to change over: diptych index pictures --retriever",
    ):
        assert words in told.stdout
    with Collection.open(world.collection) as collection:
        assert collection.retrievers() == before


def test_the_whole_comparison_comes_as_json(run: Run, world: World, other: Path) -> None:
    found = json.loads(run("rehearse", world.pictures, "--retriever", other, "--json", "--quiet").stdout)
    assert found["outcome"] in ("better", "worse", "undecided")
    assert (found["new"], found["n_sample"]) == ("other", 60)
    (group,) = found["questions"]
    assert group["kind"] == "captions"
    assert {"old_rank", "new_rank", "old_answers", "new_answers", "right"} <= group["lost"][0].keys()


def test_mistakes_are_one_sentence(run: Run, world: World, scenery: World, tmp_path: Path, other: Path) -> None:
    same = run("rehearse", world.pictures, "--retriever", world.retriever)
    assert same.exit_code == 2
    assert "uses this search model already" in same.stderr
    unknown = run("rehearse", world.pictures, "--retriever", "defualt")
    assert unknown.exit_code == 2
    assert "did you mean 'default'" in unknown.stderr
    assert run("rehearse", world.pictures).exit_code == 2
    bare = scenery.copied(tmp_path / "bare")
    run("index", bare.pictures, "--retriever", bare.retriever, "--quiet")
    nothing = run("rehearse", bare.pictures, "--retriever", other)
    assert nothing.exit_code == 2
    assert "neither captions nor clicks" in nothing.stderr
