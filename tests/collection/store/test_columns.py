"""Columns of all items: a base in files and what has changed since agree with the tables."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from diptych.collection.item import Item
from diptych.collection.store import columns as columns_module
from diptych.collection.store.columns import ColumnCache, Columns, columns_of
from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.collection.store.writing import put_items, remove_items


def random_item(name: str, dice: random.Random) -> Item:
    metadata = {"colour": dice.choice(["red", "green", None]), "year": dice.choice([2001, 2002, [2003, 2004]])}
    if dice.random() < 0.3:
        metadata |= {
            "taken": f"20{dice.randrange(10, 20)}-0{dice.randrange(1, 9)}-07",
            "latitude": 1.5,
            "longitude": 2.25,
        }
    if dice.random() < 0.2:
        metadata[f"new {dice.randrange(5)}"] = True
    n_captions = dice.randrange(3)
    return Item(
        name,
        f"{name}.jpg",
        f"{dice.randrange(9):064x}",
        labels=tuple(dice.sample(["dog", "cat"], dice.randrange(3))),
        captions=tuple(f"text {dice.randrange(9)}" for _ in range(n_captions)),
        caption_ids=tuple(f"{name}-{place}" for place in range(n_captions)),
        metadata=metadata,
    )


def assert_same(found: Columns, db: Connection) -> None:
    expected = columns_of(db)
    np.testing.assert_array_equal(np.flatnonzero(found.alive), np.flatnonzero(expected.alive))
    np.testing.assert_array_equal(found.item_content[found.alive], expected.item_content[expected.alive])
    for some, others in ((found, expected), (expected, found)):
        there = np.flatnonzero(some.caption_item)
        np.testing.assert_array_equal(some.caption_item[there], others.caption_item[there])
        np.testing.assert_array_equal(some.caption_content[there], others.caption_content[there])
    every = dict(db.rows("SELECT id, field FROM value"))
    half = found.alive & (np.arange(found.size) % 2 == 0)
    counts, among = found.live_counts, found.value_counts(half)
    for value, field in every.items():
        owners = {item for (item,) in db.rows("SELECT item FROM item_value WHERE value = ?", (value,))}
        assert set(np.flatnonzero(found.items_with(np.array([value]))).tolist()) == owners
        assert found.fields[field].tolist().count(value) == 1
        assert (int(counts[value]) if value < len(counts) else 0) == len(owners)
        assert (int(among[value]) if value < len(among) else 0) == sum(half[item] for item in owners)
    assert found.month_counts(None) == expected.month_counts(None)
    assert sum(found.month_counts(half).values()) <= sum(found.month_counts(None).values())
    for some, others in zip(found.coordinates, expected.coordinates, strict=True):
        np.testing.assert_array_equal(some[found.alive], others[expected.alive])


def change(store: Store, dice: random.Random, number: int) -> None:
    def job(db: Connection) -> None:
        names = [f"item {dice.randrange(40)}" for _ in range(dice.randrange(1, 8))]
        items = [random_item(name, dice) for name in dict.fromkeys(names)]
        put_items(db, items)
        ids = [row[0] for row in db.rows("SELECT id FROM item ORDER BY id")]
        gone = dice.sample(ids, min(len(ids), dice.randrange(4)))
        remove_items(db, gone)

    store.write(job)


def test_columns_follow_changes_from_files_and_in_the_background(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "MAX_ITEMS_IN_MEMORY", 3)
    monkeypatch.setattr(columns_module, "MAX_CHANGED", 12)
    monkeypatch.setattr(columns_module, "ITEMS_AT_ONCE", 7)
    dice, cache, bases = random.Random(0), ColumnCache(store), set()
    for number in range(25):
        change(store, dice, number)
        with store.reading() as db:
            assert_same(cache.current(db), db)
            if number % 5 == 0:
                assert_same(ColumnCache(store).current(db), db)
        cache.wait()
        bases.update(path.name for path in store.derived.glob("columns-*"))
    assert 2 < len(bases) < 25
    assert len(list(store.derived.glob("columns-*"))) == 1


def test_an_old_snapshot_stays_and_what_a_job_sees_is_not_kept(store: Store) -> None:
    cache, dice = ColumnCache(store), random.Random(1)
    change(store, dice, 1)
    with store.reading() as db:
        before = cache.current(db)
        alive = before.alive.copy()

    def job(db: Connection) -> None:
        put_items(db, [random_item("fresh", dice)])
        seen = cache.current(db)
        assert seen.alive.sum() == alive.sum() + 1
        raise ValueError("undone")

    with pytest.raises(ValueError, match="undone"):
        store.write(job)
    store.write(lambda db: put_items(db, [replace(random_item("a", dice))]))
    with store.reading() as db:
        assert_same(cache.current(db), db)
    np.testing.assert_array_equal(before.alive, alive)


def test_damaged_files_of_columns_are_made_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "MAX_ITEMS_IN_MEMORY", 3)
    dice = random.Random(2)
    for number in range(5):
        change(store, dice, number)
    with store.reading() as db:
        ColumnCache(store).current(db)
        (folder,) = store.derived.glob("columns-*")
        (folder / "alive.npy").write_bytes(b"")
        assert_same(ColumnCache(store).current(db), db)
