from __future__ import annotations

import copy
import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from diptych import Retriever
from diptych.cli import app
from diptych.collection import Collection
from diptych.models import CCA
from diptych.service.clicks import ClickLog


def diptych(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["clicks", *map(str, arguments)], prog_name="diptych", env={"COLUMNS": "200"})


@pytest.fixture
def logged(own_scene_collection: Path) -> Path:
    now = [1_000_000_000.0]
    with (
        Collection.open(own_scene_collection / ".diptych") as collection,
        ClickLog(collection.store, clock=lambda: now[0]) as log,
    ):
        for query in ("a dog", "a dog", "a cat"):
            search = log.record_search(
                query=query,
                retriever="r",
                fingerprint="f",
                target="images",
                shown=[("x", 1), ("y", 2)],
                no_good_match=False,
                best_probability=0.5,
            )
            assert search is not None
            log.record_click(search_id=search, item="y", position=2, kind="open")
            now[0] += 900_000_000.0
    return own_scene_collection


def test_status_export_and_forget(logged: Path, tmp_path: Path) -> None:
    status = diptych("status", "--json", "-c", logged)
    counts = json.loads(status.stdout)
    assert (counts["searches"], counts["clicks"], counts["results_shown"]) == (3, 3, 6)
    assert "different queries" in diptych("status", "-c", logged).stdout

    exported = diptych("export", tmp_path / "clicks.tsv", "-c", logged, "--json")
    assert json.loads(exported.stdout) == {"file": str(tmp_path / "clicks.tsv")}
    with (tmp_path / "clicks.tsv").open(newline="") as stream:
        assert list(csv.reader(stream, delimiter="\t"))[1:] == [["a cat", "y", "1"], ["a dog", "y", "2"]]
    piped = diptych("export", "-", "--format", "jsonl", "--what", "impressions", "-c", logged)
    assert {(row["item"], row["shown"], row["clicked"]) for row in map(json.loads, piped.stdout.splitlines())} == {
        ("x", 1, 0),
        ("x", 2, 0),
        ("y", 1, 1),
        ("y", 2, 2),
    }

    refused = diptych("forget", "-c", logged)
    assert refused.exit_code != 0
    assert "--yes" in refused.stderr
    assert diptych("forget", "--older-than", "3650", "--yes", "-c", logged).stdout.startswith("1 searches forgotten, 2")
    assert json.loads(diptych("forget", "--yes", "-c", logged, "--json").stdout) == {"forgotten": 2, "left": 0}


def test_mistakes_say_what_to_do(own_scene_collection: Path, tmp_path: Path) -> None:
    none = diptych("status", "-c", own_scene_collection)
    assert none.exit_code != 0
    assert "diptych serve" in none.stderr
    wrong = diptych("export", tmp_path / "clicks.xlsx", "-c", own_scene_collection)
    assert wrong.exit_code != 0
    assert "parquet" in wrong.stderr


def test_two_retrievers_are_compared_from_the_command_line(logged: Path) -> None:
    assert "No two search models" in diptych("interleave", "-c", logged).stdout
    with Collection.open(logged / ".diptych") as collection:
        other, items = copy.deepcopy(collection.retriever), collection.items()[:12]
        assert isinstance(other, Retriever)
        images = other.image_features([collection.path_of(item) for item in items])
        other.model_ = CCA(n_components=2).fit(images, other.text_features([item.captions[0] for item in items]))
        collection.add_retriever(other, name="small")
    started = diptych("interleave", "scenes", "small", "-c", logged, "--json")
    (counted,) = json.loads(started.stdout)
    assert (counted["a"], counted["b"], counted["stopped"], counted["searches"]) == ("scenes", "small", None, 0)
    for words, told in (
        (("scenes", "small"), "interleaved now"),
        (("scenes", "nobody"), "nobody"),
        (("scenes",), "name two search models"),
        (("scenes", "small", "--stop"), "name two search models"),
    ):
        refused = diptych("interleave", *words, "-c", logged)
        assert refused.exit_code != 0
        assert told in refused.stderr
    assert "running" in diptych("interleave", "-c", logged).stdout
    with Collection.open(logged / ".diptych") as collection:
        collection.remove_retriever("small")
    waiting = diptych("interleave", "-c", logged).stdout
    assert "waiting" in waiting
    assert "the search model in use answers alone" in waiting
    assert json.loads(diptych("interleave", "--stop", "--json", "-c", logged).stdout)[0]["stopped"] is not None
    assert "running" not in diptych("interleave", "-c", logged).stdout
