"""A collection as it was: items, words and points of an earlier moment, for as long as they are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from diptych.collection import Collection, Record, backup_collection, restore_collection
from diptych.collection.store.history import ChangeJournal
from diptych.errors import InvalidInputError

Past = Callable[..., Collection]


@pytest.fixture
def past(collection: Collection) -> Past:
    """Open the collection as it was."""
    load = type(collection.retriever).load
    return lambda as_of, folder=None: Collection.open(folder or collection.folder, load_retriever=load, as_of=as_of)


def content(collection: Collection) -> dict[str, tuple[object, ...]]:
    return {item.id: (item.path, item.captions, item.labels, item.metadata, item.added_ns) for item in collection}


def answers(collection: Collection) -> list[object]:
    asked = [("a dog", {}), ("cat", {"hybrid": 1.0}), ("bird", {"filter": "label:x", "hybrid": True})]
    searches = (collection.search(words, 9, target="texts", min_probability=0.0, **how) for words, how in asked)
    pictures = collection.search("picture", 9, min_probability=0.0)
    return [[(one.id, one.caption, round(one.score, 5)) for one in found] for found in (*searches, pictures)]


def test_every_version_is_as_it_was(collection: Collection, photos: Path, past: Past) -> None:
    seen = []
    steps: list[Callable[[], object]] = [
        lambda: collection.add([Record(captions=[f"a dog {n}"], labels=["x"], id=f"t{n}") for n in range(6)]),
        lambda: collection.add([Record(photos / f"{name}.png", id=name) for name in "abc"]),
        lambda: collection.update("t1", captions=["a cat"], labels=["x", "y"], metadata={"year": 2001}),
        lambda: collection.remove(["t2", "b"]),
        lambda: collection.update("t1", captions=["a bird", "a cat"]),
        lambda: collection.add([Record(captions=["a new cat"], id="t2")]),
        lambda: collection.remove(["t1"]),
        lambda: collection.repair(),
        lambda: collection.add([Record(captions=["the last bird"], labels=["x"])]),
    ]
    for step in steps:
        step()
        seen.append((collection.history()[-1], content(collection), answers(collection)))
    for turn, (version, items, found) in enumerate(seen):
        assert version.items == len(items)
        moment = datetime.fromtimestamp(version.time_ns / 1e9 + 1e-5, UTC)
        # The ways to name a version take turns.
        with past((version.number, moment, str(version.number))[turn % 3]) as then:
            assert content(then) == items
            assert answers(then) == found
            assert then.as_of is not None
            assert then.as_of.number == version.number
    assert [(one.added, one.changed, one.removed) for one in collection.history()] == [
        (0, 0, 0),
        (6, 0, 0),
        (3, 0, 0),
        (0, 1, 0),
        (0, 0, 2),
        (0, 1, 0),
        (1, 0, 0),
        (0, 0, 1),
        (1, 0, 0),
    ]
    assert collection.verify().is_whole
    assert content(collection) == seen[-1][1]


def test_the_past_cannot_be_changed_and_the_present_goes_on(collection: Collection, photos: Path, past: Past) -> None:
    collection.add(photos)
    with past(2) as then:
        collection.remove(photos / "a.png")
        assert len(then) == 3
        assert then.thumbnail(photos / "a.png") is None or isinstance(then.thumbnail(photos / "a.png"), bytes)
        for change in (lambda: then.remove(photos / "b.png"), lambda: then.add(photos), lambda: then.albums.add("x")):
            with pytest.raises(InvalidInputError, match="as_of"):
                change()
        with pytest.raises(InvalidInputError, match="as_of"):
            then.repair()
    assert len(collection) == 2


def test_days_and_times_are_in_utc_and_a_day_means_its_end(collection: Collection, photos: Path, past: Past) -> None:
    before = datetime.now(UTC)
    time.sleep(0.002)
    collection.add(photos / "a.png")
    today = datetime.now(UTC)
    with past(f"{today:%Y-%m-%d}") as then:
        assert len(then) == 1
    with past(today.astimezone().isoformat()) as then:
        assert len(then) == 1
    first = collection.history()[0]
    for early in (before - timedelta(days=400), f"{before - timedelta(days=2):%Y-%m-%d}", "2001-01-01T10:00"):
        with pytest.raises(InvalidInputError, match=f"earliest.*{first.time[:10]}"):
            past(early)
    for wrong in ("yesterday", "2026-13-01", ""):
        with pytest.raises(InvalidInputError, match="version number, a day or a time"):
            past(wrong)
    with pytest.raises(InvalidInputError, match=r"no version 99; kept are 1 .* to 2 "):
        past(99)


def test_what_is_older_than_is_kept_goes(collection: Collection, photos: Path, past: Past) -> None:
    collection.add(photos)
    collection.remove(photos / "a.png")
    collection.remove(photos / "b.png")
    journal = ChangeJournal(collection.folder)
    # As if all but the last change had been made long ago.
    old = 40 * 86_400 * 10**9
    versions = journal.versions()
    journal._rewrite([*(replace(one, time_ns=one.time_ns - old) for one in versions[:-1]), versions[-1]])
    collection.add(Record(captions=["words"]))
    assert [one.number for one in collection.history()] == [3, 4, 5]
    assert len(list(collection._state.store.past_items.contents())) >= 1
    collection.keep_history(0)
    assert [one.number for one in collection.history()] == [5]
    assert sum(len(rows) for rows in collection._state.store.past_items.contents()) == 0
    collection.remove(photos / "c.png")
    assert [one.number for one in collection.history()] == [6]
    with pytest.raises(InvalidInputError):
        past(5)
    assert collection.history_days == 0
    with pytest.raises(InvalidInputError):
        collection.keep_history(-1)


def test_facts_that_are_not_to_be_kept_are_in_no_version(collection: Collection, photos: Path, past: Past) -> None:
    collection.add(photos)
    collection.remove(photos / "a.png")
    collection.keep_facts("none")
    assert sum(len(rows) for rows in collection._state.store.past_items.contents()) == 0
    assert collection.history()[0].items == 2


def test_a_backup_has_the_past(collection: Collection, photos: Path, tmp_path: Path, past: Past) -> None:
    collection.add(photos)
    collection.remove(photos / "a.png")
    backup_collection(collection.folder, tmp_path / "backup")
    restore_collection(tmp_path / "backup", tmp_path / "again")
    with past(2, tmp_path / "again") as then:
        assert len(then) == 3


def test_a_killed_writer_leaves_no_wrong_past(collection: Collection, photos: Path, past: Past) -> None:
    collection.add(photos)
    item = collection[photos / "a.png"]
    # Killed after the past item was noted, before it was removed; and after items came that no line tells of.
    collection._state.store.past_items.keep([item], collection._state.next_ns())
    (collection.folder / "changes.jsonl").open("a").write('{"number": 3, "ti')
    with past(2) as then:
        assert sorted(one.path for one in then) == ["a.png", "b.png", "c.png"]
    collection.remove(photos / "a.png")
    with past(2) as then:
        assert len(then) == 3
    assert [one.number for one in collection.history()] == [1, 2, 3]
