"""A collection as it was: items, words and points of an earlier moment, for as long as they are kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from diptych.collection import Collection, Record, backup_collection, restore_collection
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
            assert then.verify().damaged == {}
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


def test_a_day_is_what_was_at_its_end_until_now(collection: Collection, photos: Path, past: Past) -> None:
    collection.add(photos / "a.png")
    with past(f"{datetime.now(UTC):%Y-%m-%d}") as then, past(datetime.now(UTC).astimezone().isoformat()) as too:
        collection.add(photos)
        assert len(then) == len(too) == 1
        assert [answer.id for answer in then.search("picture")] == [collection[photos / "a.png"].id]


def test_what_is_not_kept_cannot_be_asked_for(collection: Collection, photos: Path, past: Past) -> None:
    collection.add(photos)
    collection.remove(photos / "a.png")
    collection.keep_history(0)
    assert [one.number for one in collection.history()] == [3]
    collection.remove(photos / "c.png")
    assert [one.number for one in collection.history()] == [4]
    with pytest.raises(InvalidInputError):
        past(3)
    assert collection.history_days == 0


def test_facts_that_are_not_to_be_kept_are_in_no_version(collection: Collection, photos: Path, past: Past) -> None:
    collection.add(photos)
    collection.remove(photos / "a.png")
    collection.keep_facts("none")
    (first,) = collection.history()
    assert first.items == 2


def test_loaded_retrievers_serve_the_past(collection: Collection, photos: Path) -> None:
    collection.add(photos)
    with collection.at(1) as none, collection.at(2) as all:
        assert none.retriever is all.retriever is collection.retriever
        assert (len(none.search("picture")), len(all.search("picture"))) == (0, 3)


def test_a_backup_has_the_past(collection: Collection, photos: Path, tmp_path: Path, past: Past) -> None:
    collection.add(photos)
    collection.remove(photos / "a.png")
    backup_collection(collection.folder, tmp_path / "backup")
    restore_collection(tmp_path / "backup", tmp_path / "again")
    with past(2, tmp_path / "again") as then:
        assert len(then) == 3
