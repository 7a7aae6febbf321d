from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from diptych import Retriever
from diptych.cli.commands.learn import print_learning_report
from diptych.collection import Collection
from diptych.collection.learning import (
    Impressions,
    LearningRecord,
    LearningReport,
    PositionModel,
    SearchLog,
)
from diptych.collection.learning.retriever_training import promote
from diptych.collection.store.opening import create_store
from diptych.service.api.jobs import LearnJob
from diptych.service.clicks import ClickLog
from diptych.service.clicks.exports import text_query_searches
from tests.cli.command_line import Run, World

PART = {
    "old": 0.31, "new": 0.47, "relative": 0.516, "low": 0.4, "p_value": 0.00001, "n_searches": 900, "n_queries": 120,
    "n_people": 610, "share": 0.93,
}  # fmt: skip
CONSISTENCY = {"z": 9.5, "p_value": 1e-20, "n_queries": 118}
SHOWN = np.full(3, 90.0), np.array([60.0, 30.0, 1.0])
SEEN = Impressions(np.array([0, 0, 1]), np.array([1, 2, 1]), *SHOWN, np.zeros(3, dtype=bool))


@pytest.fixture
def world(indexed: World, nothing_indexed: Path) -> World:
    return indexed.copied(nothing_indexed / "pictures")


def searched(log: ClickLog, query: str, shown: list[str], clicked: str | None, **options: object) -> None:
    places = [(item, place) for place, item in enumerate(shown, start=1)]
    asked = {"retriever": "r", "fingerprint": "f", "target": "images", "no_good_match": False, "best_probability": 0.5}
    search = log.record_search(query=query, shown=places, **{**asked, **options})
    if clicked is not None:
        log.record_click(search_id=search, item=clicked, position=1 + shown.index(clicked), kind="open")


def test_the_served_log_is_read_by_position_and_words_alone_count(tmp_path: Path) -> None:
    store = create_store(tmp_path)
    with ClickLog(store) as log:
        searched(log, "a dog", ["x", "y"], "y")
        searched(log, "A  Dog", ["y", "x"], "y")
        searched(log, "a dog", ["x", "y"], None)
        searched(log, "a dog - cat", ["x"], "x")
        searched(log, "a dog", ["t"], "t", target="texts")
    log = SearchLog.from_searches(text_query_searches(store))
    seen = log.impressions()
    counted = zip(seen.pairs, seen.positions, seen.shown, seen.clicked, strict=True)
    assert log.queries == ("a dog",)
    assert {(log.items[item], *map(int, rest)) for item, *rest in counted} == {
        ("x", 1, 2, 0),
        ("y", 2, 2, 1),
        ("y", 1, 1, 1),
        ("x", 2, 1, 0),
    }


def test_too_few_clicks_change_nothing_and_are_remembered(run: Run, world: World) -> None:
    nothing = run("learn", world.pictures)
    assert nothing.exit_code != 0
    with Collection.open(world.collection) as collection:
        ids = [item.id for item in collection][:3]
        before = collection.status().fingerprint
    with Collection.open(world.collection) as collection, ClickLog(collection.store) as log:
        searched(log, "a red ball", ids, None)
    assert run("learn", world.pictures).exit_code != 0
    with Collection.open(world.collection) as collection, ClickLog(collection.store) as log:
        searched(log, "a red ball", ids, ids[1])
    told = run("learn", world.pictures, "--dry-run")
    assert told.exit_code == 0
    assert "30 are needed to decide; collect clicks on" in told.stdout
    assert "Nothing was changed." in told.stdout
    found = json.loads(run("learn", world.pictures, "--json", "--quiet").stdout)
    assert found["action"] == "kept"
    assert found["is_better"] is False
    with Collection.open(world.collection) as collection:
        assert collection.status().fingerprint == before
        assert [record.action for record in collection.retriever_history()] == ["kept"]


def test_more_than_half_of_the_queries_is_not_held_out_here_or_by_a_job(run: Run, world: World) -> None:
    assert run("learn", world.pictures, "--held-out", "0.6").exit_code == 2
    assert LearnJob(kind="learn", held_out=0.5).held_out == 0.5
    with pytest.raises(ValidationError):
        LearnJob(kind="learn", held_out=0.6)


def test_a_table_of_clicks_is_taken_as_it_is(run: Run, world: World, tmp_path: Path) -> None:
    picture = next(world.pictures.glob("*.png"))
    table = tmp_path / "clicks.csv"
    table.write_text(f"query,image,clicks\na red ball,{picture.name},3\n")
    told = run("learn", world.pictures, "--log", table)
    assert told.exit_code == 0
    assert "tells no positions" in told.stdout
    assert "The present search model stays." in told.stdout


def test_rollback_is_one_command(run: Run, world: World) -> None:
    refused = run("rollback", world.pictures)
    assert refused.exit_code != 0
    with Collection.open(world.collection) as collection:
        now = collection.retrievers()[0]
        other = Retriever.load(world.retriever).set_params(name="learned from clicks")
        done = promote(collection, flipped(other), LearningRecord("", "kept", *(now.name, now.fingerprint) * 2))
        assert collection.status().fingerprint == done.after_fingerprint
    back = run("rollback", world.pictures, "--json")
    assert back.exit_code == 0
    assert json.loads(back.stdout)["after"] == now.name
    with Collection.open(world.collection) as collection:
        assert collection.status().fingerprint == now.fingerprint


def flipped(retriever: Retriever) -> Retriever:
    """Return a retriever of other points, by turning an array of its model."""
    for name, value in vars(retriever.model_).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.ndim == 2:
            setattr(retriever.model_, name, -value)
            return retriever
    raise AssertionError("the model has nothing to turn")


RECORD = LearningRecord(
    "", "promoted", "default", "f0", "learned from clicks", "f1", "later searches are answered better", "default",
    "DCG", 0.31, 0.47, 0.00001, 0.0038, 180, 120, 5000.0, 0.93, {}, (("red ball", 0.1, 0.8),),
    (("night", 0.9, 0.6),), "clicks",
    {"repeated": PART, "new": {**PART, "n_searches": 0}, "visual_consistency": CONSISTENCY},
)  # fmt: skip


def test_no_number_of_people_is_told_where_visitors_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = {**PART, "n_people": None}
    record = replace(
        RECORD, gate={"repeated": unknown, "new": {**unknown, "n_searches": 0}, "visual_consistency": CONSISTENCY}
    )
    print_learning_report(LearningReport(record, retriever=Retriever()), is_dry_run=False, as_json=False)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "asked before" in line]
    assert row.split()[2:5] == ["120", "900", "–"]


def test_the_report_tells_what_gained_and_the_way_back(capsys: pytest.CaptureFixture[str]) -> None:
    report = LearningReport(RECORD, retriever=Retriever(), positions=PositionModel().fit(SEEN))
    print_learning_report(report, is_dry_run=False, as_json=False)
    told = capsys.readouterr().out
    for words in (
        "5,000 clicks on 180 queries",
        "1.00 at 1, 0.50 at 2",
        "1.00 of that below a click",
        "+51.6%",
        "+40.0%",
        "9.5 standard deviations beyond luck (118 queries)",
        "p < 0.0038 of the error budget",
        "red ball",
        "night",
        "p < 0.0001",
        "`diptych rollback` goes back to 'default'",
    ):
        assert words in told
