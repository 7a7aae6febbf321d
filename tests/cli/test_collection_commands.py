from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.collection import Collection
from tests.cli.command_line import Run, World


@pytest.fixture
def world(indexed: World, nothing_indexed: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A copy of the indexed scenes, which is also the current folder."""
    copy = indexed.copied(nothing_indexed / "pictures")
    monkeypatch.chdir(copy.pictures)
    return copy


def test_a_new_picture_is_added_with_what_is_said_about_it(run: Run, world: World, tmp_path: Path) -> None:
    picture = tmp_path / "new.png"
    shutil.copyfile(world.pictures / "scene-000001.png", picture)
    result = run(
        "add", picture, "--caption", "my own words", "--label", "mine", "--meta", "year=2010", "--meta", "by=me"
    )
    assert result.exit_code == 0
    assert result.stdout.startswith("1 added; 61 items in ")
    with Collection.open(world.collection) as collection:
        item = collection[picture]
    assert (item.captions, item.labels, item.metadata) == (("my own words",), ("mine",), {"year": 2010, "by": "me"})


def test_words_join_those_a_picture_has_or_replace_them(run: Run, world: World) -> None:
    with Collection.open(world.collection) as collection:
        before = collection["scene-000001.png"]
    run("add", "scene-000001.png", "--caption", "another caption", "--label", "seen", "--meta", "year=2010")
    with Collection.open(world.collection) as collection:
        joined = collection["scene-000001.png"]
    assert joined.captions == (*before.captions, "another caption")
    assert joined.labels == (*before.labels, "seen")
    assert joined.metadata == {**before.metadata, "year": 2010}
    assert "1 updated" in run("add", "scene-000001.png", "--caption", "the only one", "--replace").stdout
    with Collection.open(world.collection) as collection:
        replaced = collection["scene-000001.png"]
    assert (replaced.captions, replaced.labels, replaced.metadata) == (("the only one",), (), {})


def test_words_alone_are_a_text_to_be_found(run: Run, world: World) -> None:
    assert run("add", "--caption", "a very special sentence").exit_code == 0
    result = run("search", "a very special sentence", "--target", "texts", "--mode=both", "--all", "--json", "-k", "1")
    assert json.loads(result.stdout)["answers"][0]["caption"] == "a very special sentence"


def test_adding_what_is_no_picture_fails_with_a_reason(run: Run, world: World) -> None:
    Path("notes.jpg").write_text("no picture")
    result = run("add", "notes.jpg")
    assert result.exit_code == 1
    assert "notes.jpg" in result.stderr
    assert "1 skipped" in result.stdout


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["scene-000001.png", "scene-000002.png", "--yes"], 58),
        (["--filter", "name:scene-00001*", "--yes"], 50),
        ([".", "-y"], 0),
    ],
)
def test_removed_items_are_gone_and_their_files_are_not(run: Run, world: World, words: list[str], left: int) -> None:
    result = run("remove", *words)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{60 - left} items removed, {left} left")
    with Collection.open(world.collection) as collection:
        assert len(collection) == left
    assert len(list(world.pictures.glob("*.png"))) == 60


def test_an_id_removes_its_item(run: Run, world: World) -> None:
    with Collection.open(world.collection) as collection:
        item = collection["scene-000001.png"].id
    assert run("remove", f"item:{item}", "--yes").stdout.startswith("1 item removed, 59 left")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["scene-000001.png"], "add --yes"),
        (["nothing.png", "--yes"], "nothing.png"),
        ([], "say what to remove"),
        (["scene-000001.png", "--filter", "label:car"], "not both"),
    ],
)
def test_nothing_is_removed_by_mistake(run: Run, world: World, words: list[str], hint: str) -> None:
    result = run("remove", *words)
    assert result.exit_code == 2
    assert hint in result.stderr
    with Collection.open(world.collection) as collection:
        assert len(collection) == 60


def test_a_status_needs_no_network(run: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("status", "--json").stdout
    listing = "import sys; from diptych.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    words = [sys.executable, "-c", listing, "status", "--json"]
    again = subprocess.run(words, capture_output=True, text=True, check=True)
    assert again.stdout == first
    loaded = {name.partition(".")[0] for name in again.stderr.split()}
    assert {"pyarrow", "pandas", "sklearn", "onnxruntime"}.isdisjoint(loaded)
    moved = world.pictures.rename(world.pictures.with_name("moved"))
    monkeypatch.chdir(moved)
    assert json.loads(run("status", "--json").stdout)["root"] == str(moved)


def test_what_was_done_is_told_in_json(run: Run, world: World, tmp_path: Path) -> None:
    def told(*words: str | Path) -> dict[str, Any]:
        result = run(*words, "--json", "-q")
        assert result.exit_code == 0, result.output
        facts: dict[str, Any] = json.loads(result.stdout)
        return facts

    assert told("add", "--caption", "a text of its own")["added"] == 1
    removed = told("remove", "scene-000001.png", "--yes")
    assert (len(removed["removed"]), removed["left"]) == (1, 60)
    assert told("remove", "--filter", "label:nosuch", "--yes") == {"removed": [], "left": 60}
    assert told("export", tmp_path / "items.csv") == {"file": str(tmp_path / "items.csv")}
    assert told("backup", world.collection, tmp_path / "backup")["items"] == 60
    restored = told("restore", tmp_path / "backup", tmp_path / "restored")
    assert (restored["items"], restored["target"]) == (60, str(tmp_path / "restored"))
    assert told("datasets", "get", "scenes") == {"folder": "built in"}


def test_a_status_counts_what_is_there_now(run: Run, world: World) -> None:
    before = json.loads(run("status", "--json").stdout)
    with Collection.open(world.collection) as collection:
        collection.remove("scene-000001.png")
    after = json.loads(run("status", "--json").stdout)
    assert (before["pictures"], after["pictures"]) == (60, 59)


def test_status(run: Run, world: World) -> None:
    state = json.loads(run("status", "--json").stdout)
    assert (state["pictures"], state["captions"], state["retriever"], state["stale"]) == (60, 300, "cheap", False)
    shown = run("status").stdout
    assert re.search(r"^search model +cheap ", shown, re.MULTILINE)
    assert "retriever" not in shown
    assert str(world.pictures) in shown
    assert "last skipped" not in shown
    Path("broken.jpg").write_bytes(b"nothing")
    run("index", ".")
    assert "broken.jpg" in run("status").stdout


def test_duplicates(run: Run, world: World) -> None:
    assert json.loads(run("duplicates", "--only-exact", "--json").stdout) == []
    assert run("duplicates", "--only-exact").stdout == "no two pictures are the same\n"
    shutil.copyfile("scene-000001.png", "copy.png")
    assert "copies of others" in run("index", ".").stderr
    assert run("duplicates", "--only-exact").stdout == "copies:\n  scene-000001.png\n  copy.png\n"


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_items_are_exported(run: Run, world: World, tmp_path: Path, format: str) -> None:
    target = tmp_path / f"items.{format}"
    result = run("export", target)
    assert result.stdout == f"{target}\n"
    if format == "csv":
        paths = [row["path"] for row in csv.DictReader(target.open())]
    elif format == "jsonl":
        paths = [json.loads(line)["path"] for line in target.read_text().splitlines()]
    else:
        import pyarrow.parquet

        paths = pyarrow.parquet.read_table(target)["path"].to_pylist()
    assert sorted(paths) == sorted(path.name for path in world.pictures.glob("*.png"))


def test_points_are_exported(run: Run, world: World, tmp_path: Path) -> None:
    target = tmp_path / "points"
    assert run("export", target, "--format", "npz").exit_code == 0
    with np.load(target) as arrays:
        assert arrays["image"].shape == (60, 16)
        assert arrays["text"].shape == (300, 16)
        assert len(set(arrays["image_ids"])) == 60


def test_answers_are_exported_as_a_run(run: Run, world: World, tmp_path: Path) -> None:
    queries, target = tmp_path / "queries.tsv", tmp_path / "answers.run"
    queries.write_text("q1\ta red car\na snowy mountain\n")
    assert run("export", target, "--queries", queries, "-k", "3").stdout == f"{target}\n"
    lines = [line.split() for line in target.read_text().splitlines()]
    assert [line[0] for line in lines] == ["q1"] * 3 + ["2"] * 3
    found = run("search", "a red car", "-k", "3", "--all").stdout.split()
    assert [line[2] for line in lines[:3]] == [Path(path).name for path in found]
    assert "--queries" in run("export", target).stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["out.xyz"], "unknown export format 'xyz'"),
        (["."], "is a folder"),
        (["out", "--format", "doc"], "doc"),
        (["nowhere/out.csv"], "the folder nowhere does not exist"),
    ],
)
def test_a_wrong_export_costs_one_line(run: Run, world: World, words: list[str], hint: str) -> None:
    result = run("export", *words)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert result.stderr.count("\n") == 1


def test_damage_is_named_and_mended(run: Run, world: World) -> None:
    whole = run("verify")
    assert (whole.exit_code, "is whole" in whole.stdout) == (0, True)
    with closing(sqlite3.connect(world.collection / "collection.sqlite")) as raw, raw:
        raw.execute("UPDATE thumbnail SET jpeg = x'00' WHERE content = (SELECT min(content) FROM thumbnail)")
    found = run("verify", "--json")
    assert (found.exit_code, ["thumbnail" in row for row in json.loads(found.stdout)["damaged"]]) == (1, [True])
    assert "`diptych repair`" in run("verify").stdout
    assert run("repair").exit_code == 0
    with Collection.open(world.collection) as collection:
        assert all(collection.thumbnails(item.id for item in collection.items() if item.path))


def test_a_backup_is_restored_elsewhere(run: Run, world: World, tmp_path: Path) -> None:
    made = run("backup", tmp_path / "backup")
    assert (made.exit_code, made.stdout.startswith("60 items in ")) == (0, True)
    restored = run("restore", tmp_path / "backup", tmp_path / "restored")
    assert restored.stdout.startswith("60 pictures and 300 captions in ")
    asked = ["search", "a red car", "--all", "--json", "-k", "5"]
    there, here = (json.loads(run(*asked, *where).stdout) for where in (("-c", tmp_path / "restored"), ()))
    assert there["answers"] == here["answers"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["backup", "a", "b", "c"], "got 3 names"),
        (["backup", "nowhere", "target"], "does not exist"),
        (["backup", "scene-000001.png"], "exists already"),
        (["restore", "nowhere", "target"], "is not a collection"),
    ],
)
def test_a_backup_that_cannot_be_is_one_clear_error(run: Run, world: World, words: list[str], hint: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert not Path("target").exists()


def test_restoring_without_the_pictures_says_so(run: Run, world: World, tmp_path: Path) -> None:
    run("backup", tmp_path / "backup")
    shutil.move(world.pictures, tmp_path / "moved")
    told = run("restore", tmp_path / "backup", tmp_path / "lost").stderr
    assert "name their folder once: diptych index FOLDER --collection" in told
    found = run("restore", tmp_path / "backup", tmp_path / "found", "--root", tmp_path / "moved")
    assert "--root" not in found.stderr
    assert f"with pictures from {tmp_path / 'moved'}" in found.stdout


def test_albums_are_made_of_files_filters_and_searches(run: Run, world: World) -> None:
    assert "no albums yet" in run("album", "list").stdout
    first, second = "scene-000003.png", "scene-000001.png"
    assert "2 items added to Best, which has 2 now" in run("album", "add", "Best", first, second).stdout
    with Collection.open(world.collection) as collection:
        label = collection[first].labels[0]
        alike = len(collection.items(f"label:{label}"))
    added = json.loads(run("album", "add", "Alike", "--filter", f"label:{label}", "--json").stdout)
    assert len(added["ids"]) == alike
    assert run("album", "add", "Alike", "--search", "a boat", "-k", "3").exit_code == 0
    shown = run("album", "show", "best").stdout.splitlines()
    assert [Path(line).name for line in shown] == [first, second]
    found = run("search", "a boat", "--filter", "album:best", "--all", "--format", "paths").stdout.splitlines()
    assert {Path(line).name for line in found} == {first, second}
    assert "Best has 1 item now" in run("album", "remove", "Best", second).stdout
    assert "Best" in run("album", "list").stdout
    assert run("album", "delete", "best").exit_code == 0
    result = run("album", "show", "best")
    assert (result.exit_code, "unknown album" in result.stderr) == (2, True)
    assert run("album", "remove", "Alike").exit_code == 2


def test_a_saved_search_answers_as_the_search(run: Run, world: World) -> None:
    how = ("--filter", "name:scene-00000*", "--mode", "similarity", "--min-probability", "0")
    assert "saved run 'Boats'" in run("saved", "add", "Boats", "a", "boat", *how).stdout
    assert run("saved", "run", "boats", "-k", "4").stdout == run("search", "a boat", *how, "-k", "4").stdout
    assert json.loads(run("saved", "run", "Boats", "--json").stdout)["query"] == "a boat"
    run("saved", "add", "First", "--filter", "name:scene-000001*")
    assert run("saved", "run", "First").stdout.strip().endswith("scene-000001.png")
    assert [one["name"] for one in json.loads(run("saved", "list", "--json").stdout)] == ["Boats", "First"]
    assert run("saved", "delete", "Boats").exit_code == 0
    assert "First" in (listed := run("saved", "list").stdout)
    assert "Boats" not in listed
    assert run("saved", "add", "Bad", "x", "--retriever", "nobody").exit_code == 2


def test_answers_become_folders_zip_files_and_galleries(run: Run, world: World, tmp_path: Path) -> None:
    run("album", "add", "Best", "scene-000003.png", "scene-000001.png")
    result = run("export", tmp_path / "best.zip", "--album", "best")
    assert (result.exit_code, result.stdout.strip()) == (0, str(tmp_path / "best.zip"))
    with zipfile.ZipFile(tmp_path / "best.zip") as archive:
        assert archive.namelist() == ["1-scene-000003.png", "2-scene-000001.png", "captions.json"]
    gallery = tmp_path / "gallery"
    shutil.move(world.pictures / "scene-000002.png", tmp_path / "gone.png")
    words = ("export", gallery, "--format", "gallery", "--filter", "name:scene-00000*", "--title", "Scenes")
    told = json.loads(run(*words, "--json").stdout)
    assert told["left_out"] == ["scene-000002.png"]
    assert "<h1>Scenes</h1>" in (gallery / "index.html").read_text()
    assert (again := run(*words)).exit_code == 2
    assert "--force" in again.stderr
    assert run(*words, "--force").exit_code == 0
    run("saved", "add", "Boats", "a boat", "--min-probability", "0")
    assert run("export", tmp_path / "folder", "--format", "folder", "--saved", "Boats", "-k", "4").exit_code == 0
    assert len(list((tmp_path / "folder").glob("?-*.png"))) == 4
    for wrong in (("--format", "zip"), ("--format", "csv", "--album", "best"), ("--album", "best", "--saved", "Boats")):
        assert run("export", tmp_path / "wrong.zip", *wrong).exit_code == 2
    assert not (tmp_path / "wrong.zip").exists()
