"""Pages of items: in order, whole, and stable while others write."""

from __future__ import annotations

import random
from typing import Any

import pytest

from diptych.collection.filter import Filter
from diptych.collection.item import Item
from diptych.collection.store import listing
from diptych.collection.store.columns import ColumnCache
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_id
from diptych.collection.store.listing import Order, list_items
from diptych.collection.store.store import Store
from diptych.collection.store.writing import put_items, remove_items
from diptych.errors import InvalidInputError


def item(number: int, dice: random.Random) -> Item:
    data = {"taken": f"2024-0{dice.randrange(1, 4)}"} if dice.random() < 0.7 else {}
    path = f"{dice.choice('abC')}/{number}.jpg" if dice.random() < 0.8 else None
    return Item(str(number), path, None, labels=("dog",) if dice.random() < 0.4 else (), metadata=data)


def put(store: Store, items: list[Item]) -> None:
    store.write(lambda db: put_items(db, items))


def pages(store: Store, **options: Any) -> list[str]:
    cache, found, cursor = ColumnCache(store), [], None
    while True:
        with store.reading() as db:
            page = list_items(db, cache.current(db), cursor=cursor, **options)
        found += [one.id for one in page.items]
        cursor = page.next
        if cursor is None:
            return found
        assert len(page.items) == options["limit"]


KEYS = {
    "added": lambda one: 0,
    "name": lambda one: (one.path or "").casefold(),
    "taken": lambda one: one.fields.get("taken", ""),
    "updated": lambda one: one.updated_ns,
}


@pytest.mark.parametrize("max_sorted", [20_000, 0])
@pytest.mark.parametrize("order", ["added", "name", "taken", "updated"])
def test_pages_together_are_everything_in_order(
    store: Store, order: Order, max_sorted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_SORTED", max_sorted)
    dice = random.Random(0)
    for start in range(0, 60, 20):
        put(store, [item(number, dice) for number in range(start, start + 20)])
    with store.reading() as db:
        ids = db.ids("SELECT id FROM item ORDER BY id").tolist()
        every = dict(zip(ids, items_by_id(db, ids), strict=True))
    for wanted in (None, Filter.parse("label:dog")):
        kept = [number for number in ids if wanted is None or every[number].labels]
        for descending in (True, False):
            ranked = sorted(kept, key=lambda number: (KEYS[order](every[number]), number), reverse=descending)
            expected = [every[number].id for number in ranked]
            for limit in (1, 7, 100):
                assert pages(store, wanted=wanted, order=order, descending=descending, limit=limit) == expected


def test_others_may_write_between_two_pages(store: Store) -> None:
    dice = random.Random(1)
    put(store, [item(number, dice) for number in range(30)])
    with store.reading() as db:
        columns = ColumnCache(store).current(db)
        first = list_items(db, columns, order="name", limit=10)
        rest = [one.id for one in list_items(db, columns, order="name", cursor=first.next, limit=100).items]

    def write(db: Connection) -> None:
        gone = db.ids("SELECT id FROM item WHERE name IN (?, ?, ?)", (first.items[-1].id, first.items[0].id, rest[0]))
        remove_items(db, gone)
        put_items(db, [Item("first", "zz.jpg", None), Item("last", "0.jpg", None)])

    store.write(write)
    with store.reading() as db:
        page = list_items(db, ColumnCache(store).current(db), order="name", cursor=first.next, limit=100)
        ids = [one.id for one in page.items]
        assert [name for name in ids if name != "last"] == rest[1:]
        assert "last" in ids


@pytest.mark.parametrize("cursor", ["", "x", "WyJhIl0", "é", "bnVsbA"])
def test_other_cursors_are_refused(store: Store, cursor: str) -> None:
    put(store, [Item(str(number), None, None) for number in range(3)])
    with store.reading() as db:
        columns = ColumnCache(store).current(db)
        with pytest.raises(InvalidInputError, match="cursor"):
            list_items(db, columns, cursor=cursor)
        of_added = list_items(db, columns, limit=1).next
        with pytest.raises(InvalidInputError, match="cursor"):
            list_items(db, columns, order="name", cursor=of_added)
        with pytest.raises(InvalidInputError, match="cursor"):
            list_items(db, columns, descending=False, cursor=of_added)
