"""Adding: the store follows a folder whatever happens to it, whoever else writes, and wherever it is interrupted."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from diptych.collection.filter import Filter
from diptych.collection.indexing.add_report import AddProgress
from diptych.collection.item import Record
from diptych.collection.store.items import unread_files
from diptych.collection.store.writing import put_items
from diptych.errors import InvalidInputError, UnknownItemError
from tests.doubles import ToyRetriever

from .conftest import Indexed


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.png")}


def test_the_store_follows_a_folder(indexed: Indexed, photos: Path) -> None:
    rng = random.Random(3)
    for turn in range(8):
        for number in range(3):
            names = sorted(path.name for path in photos.glob("*.png"))
            name = rng.choice(names)
            match rng.choice(("new", "copy", "rename", "change", "remove")):
                case "new":
                    (photos / f"new {turn} {number}.png").write_text(f"new {turn} {number}")
                case "copy":
                    shutil.copy(photos / name, photos / f"copy {turn} {number}.png")
                case "rename":
                    (photos / name).rename(photos / f"moved {turn} {number}.png")
                case "change":
                    (photos / name).write_text(f"changed {turn} {number} {'x' * turn}")
                case "remove" if len(names) > 2:
                    (photos / name).unlink()
                case _:
                    pass
        before = indexed.paths()
        report = indexed.changes.add(photos, None, missing_in=photos)
        assert {path: item.content_hash for path, item in indexed.paths().items()} == hashes(photos)
        after = {item.id: item for item in indexed.paths().values()}
        assert len(before) + report.added - len(report.removed) == len(after)
        assert indexed.changes.add(photos, None).unchanged == len(after)
    indexed.check_whole()


def test_a_renamed_file_keeps_its_item_and_a_copy_is_named(indexed: Indexed, photos: Path) -> None:
    indexed.changes.add([Record(photos / "a.png", captions=["the first"], labels=["x"])], None)
    known = indexed.paths()["a.png"]
    (photos / "deep").mkdir()
    (photos / "a.png").rename(photos / "deep" / "z.png")
    shutil.copy(photos / "b.png", photos / "copy.png")
    report = indexed.changes.add(photos, None)
    assert (report.renamed, report.added, report.duplicates) == (1, 3, {"copy.png": "b.png"})
    item = indexed.paths()["deep/z.png"]
    assert (item.id, item.captions, item.labels) == (known.id, ("the first",), ("x",))


def test_two_may_add_the_same_at_the_same_time(indexed: Indexed, photos: Path) -> None:
    for number in range(150):
        (photos / f"{number}.png").write_text(f"picture {number}")
    texts = [Record(captions=[f"text {number}"]) for number in range(50)]
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: indexed.changes.add([photos, *texts], None), range(2)))
    assert sum(report.added for report in reports) == 203
    assert all(report.skipped == {} and report.changed + report.unchanged == 203 for report in reports)
    assert len(indexed.items()) == 203
    indexed.check_whole()


def test_what_another_has_changed_meanwhile_is_looked_at_anew(indexed: Indexed, photos: Path) -> None:
    indexed.changes.add([Record(captions=[f"text {number}"], id=f"t{number}") for number in range(3)], None)

    def interfere(progress: AddProgress) -> None:
        if progress.done == 0:
            indexed.changes.update_all({"t0": {"labels": ["theirs"]}, "t2": {"captions": ["their text"]}})
            indexed.changes.remove("t1")
            indexed.changes.add([Record(photos / "a.png", captions=["their caption"])], None)

    records = [Record(captions=[f"new {number}"], id=f"t{number}") for number in range(3)]
    report = indexed.changes.add([*records, photos / "a.png", photos / "b.png"], interfere)
    items = indexed.items()
    assert [items[f"t{number}"].captions for number in range(3)] == [("new 0",), ("new 1",), ("new 2",)]
    assert items["t0"].labels == ("theirs",)
    assert indexed.paths()["a.png"].captions == ("their caption",)
    assert (report.unchanged, set(indexed.paths())) == (1, {"a.png", "b.png"})
    indexed.check_whole()


def test_what_is_added_after_a_model_came_has_its_points(indexed: Indexed, photos: Path) -> None:
    steps: list[int] = []

    def interfere(progress: AddProgress) -> None:
        steps.append(progress.done)
        if progress.done == 1:
            indexed.add_model(ToyRetriever(1))

    report = indexed.changes.add([photos, Record(captions=["a text"], id="before")], interfere)
    assert (report.added, steps) == (4, [0, 1, 4])
    # What was there before gets its points from the one who adds the model.
    indexed.changes.remove("before")
    indexed.check_whole()


def test_what_shares_points_with_an_item_that_goes_meanwhile_is_encoded_again(indexed: Indexed, photos: Path) -> None:
    class Meddling(ToyRetriever):
        def text_features(self, texts: Sequence[str]) -> np.ndarray:
            if "old" in indexed.items():
                indexed.changes.remove("old")
            return super().text_features(texts)

    for change in (
        lambda: indexed.changes.add([Record(captions=["shared"], id="a"), Record(captions=["new"], id="b")], None),
        lambda: indexed.changes.update_all({"a": {"captions": ["shared too", "newer"]}}),
    ):
        indexed.changes.add([Record(captions=["shared", "shared too"], id="old")], None)
        plain = dict(indexed.retrievers)
        indexed.retrievers |= {name: Meddling() for name in plain}
        change()
        assert "old" not in indexed.items()
        indexed.retrievers |= plain
        indexed.check_whole()


def test_an_interruption_keeps_what_was_acknowledged(indexed: Indexed, photos: Path) -> None:
    for number in range(200):
        (photos / f"{number}.png").write_text(f"picture {number % 150}")
    stored: set[str] = set()

    def interrupt(progress: AddProgress) -> None:
        stored.update(progress.stored)
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        indexed.changes.add(photos, interrupt)
    assert len(stored) == 64
    assert stored <= set(indexed.items())
    report = indexed.changes.add(photos, None)
    assert report.added + report.unchanged == 203
    assert stored <= set(indexed.items())
    indexed.check_whole()


def test_what_cannot_be_used_is_named_and_costs_no_other(indexed: Indexed, photos: Path) -> None:
    (photos / "bad.png").write_text("bad")
    (photos / "also bad.png").write_text("bad")
    report = indexed.changes.add([photos, photos / "none.png", Record(photos / "a.png", id="a")], None)
    assert (report.added, set(report.skipped)) == (
        3,
        {str(photos / f"{name}.png") for name in ("bad", "also bad", "none")},
    )
    assert report.skipped[str(photos / "bad.png")] == "it is bad"
    with indexed.store.reading() as db:
        assert unread_files(db) == report.skipped
    assert (
        "remove that one" in indexed.changes.add(Record(photos / "a.png", id="b"), None).skipped[str(photos / "a.png")]
    )


def test_changes_are_all_made_or_none(indexed: Indexed, photos: Path) -> None:
    indexed.changes.add([photos, Record(captions=["words"], id="t")], None)
    with pytest.raises(UnknownItemError):
        indexed.changes.update_all({"t": {"labels": ["x"]}, "nothing": {"labels": ["x"]}})
    with pytest.raises(InvalidInputError, match="remove it"):
        indexed.changes.update_all({"a.png": {"labels": ["x"]}, "t": {"captions": []}})
    assert all(item.labels == () for item in indexed.items().values())
    changed = indexed.changes.update_all({photos / "a.png": {"captions": ["one", "two"]}, "t": {"labels": ["x"]}})
    assert [item.captions for item in changed] == [("one", "two"), ("words",)]
    assert indexed.changes.update_all({"a.png": {"captions": ["two"]}})[0].caption_ids == changed[0].caption_ids[1:]
    assert indexed.changes.remove(Filter.parse("label:x")) == ["t"]
    indexed.check_whole()


def test_facts_that_are_not_to_be_kept_go(indexed: Indexed, photos: Path) -> None:
    indexed.changes.add(photos, None)
    item = indexed.paths()["a.png"]
    facts = {"camera": "X", "latitude": 1.0, "longitude": 2.0}
    object.__setattr__(item, "facts", facts)
    indexed.store.write(lambda db: put_items(db, [item]))
    assert indexed.changes.keep_facts("no-places") == 1
    assert indexed.paths()["a.png"].facts == {"camera": "X"}
    assert indexed.changes.keep_facts("no-places") == 0
