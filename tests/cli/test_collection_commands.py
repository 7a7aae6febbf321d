from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

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
    result = run(
        "search", "a very special sentence", "--target", "texts", "--hybrid", "--all", "--format", "jsonl", "-k", "1"
    )
    assert json.loads(result.stdout)["caption"] == "a very special sentence"


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
        (["scene-000001.png"], "say --yes"),
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


def test_status(run: Run, world: World) -> None:
    state = json.loads(run("status", "--json").stdout)
    assert (state["pictures"], state["captions"], state["retriever"], state["stale"]) == (60, 300, "cheap", False)
    shown = run("status").stdout
    assert "cheap" in shown
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


def test_a_backup_is_restored_elsewhere(run: Run, world: World, tmp_path: Path) -> None:
    made = run("backup", tmp_path / "backup")
    assert (made.exit_code, made.stdout.startswith("60 items in ")) == (0, True)
    restored = run("restore", tmp_path / "backup", tmp_path / "restored")
    assert restored.stdout.startswith("60 pictures and 300 captions in ")
    asked = ["search", "a red car", "--all", "--format", "jsonl", "-k", "5"]
    assert run(*asked, "--collection", tmp_path / "restored").stdout == run(*asked).stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["backup", "a", "b", "c"], "got 3 names"),
        (["backup", "nowhere", "target"], "does not exist"),
        (["backup", "scene-000001.png"], "exists already"),
        (["restore", "nowhere", "target"], "is no backup"),
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
    assert "name their folder with --root" in run("restore", tmp_path / "backup", tmp_path / "lost").stderr
    found = run("restore", tmp_path / "backup", tmp_path / "found", "--root", tmp_path / "moved")
    assert "--root" not in found.stderr
    assert f"with pictures from {tmp_path / 'moved'}" in found.stdout
