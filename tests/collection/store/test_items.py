"""Items as rows: what is put is read back, and what hangs on an item goes with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diptych.collection.filter import parse_filter
from diptych.collection.item import Item
from diptych.collection.store.columns import ColumnCache
from diptych.collection.store.facets import facets
from diptych.collection.store.filtering import matching_items
from diptych.collection.store.items import (
    count_items,
    items_by_content,
    items_by_id,
    items_by_name,
    items_by_path,
    iterate_items,
)
from diptych.collection.store.store import Store
from diptych.collection.store.writing import CAPTION_COLUMNS, COLUMNS, content_ids, put_items, remove_items, row_crc


def boat(number: int = 0, **changes: object) -> Item:
    """Return an item with everything that one can have."""
    item = Item(
        id=f"boat-{number}",
        path=f"Boats/Größe {number}.JPG",
        content_hash=f"{number:064x}",
        size=1234,
        mtime_ns=5,
        width=640,
        height=480,
        labels=("boat", "red"),
        metadata={"year": 2010, "tags": ["a", "b"], "camera": {"make": "X"}},
        caption_ids=(f"boat-{number}-a", f"boat-{number}-b"),
        captions=("a red boat", "on the sea"),
        facts={"taken": "2019-07-14T10:00:00", "latitude": 38.7, "longitude": -9.1},
        facts_read="1 all",
    )
    return replace(item, **changes)  # type: ignore[arg-type]


def put(store: Store, *items: Item) -> list[int]:
    return store.write(lambda db: put_items(db, items))


def remove(store: Store, *numbers: int) -> None:
    store.write(lambda db: remove_items(db, numbers))


def said(item: Item) -> Item:
    """Return an item without the times that writing gave it."""
    return replace(item, added_ns=0, updated_ns=0)


def test_what_is_put_is_read_back(store: Store) -> None:
    items = [boat(0), boat(1), Item("text", None, None, captions=("only words",), caption_ids=("text-a",))]
    first, second, third = put(store, *items)
    with store.reading() as db:
        assert [said(item) for item in items_by_id(db, [third, first, 99, second])] == [items[2], items[0], items[1]]
        assert items_by_name(db, ["boat-1", "none"])["boat-1"][0] == second
        assert items_by_path(db, ["Boats/Größe 0.JPG"])["Boats/Größe 0.JPG"][0] == first
        assert items_by_content(db, [f"{1:064x}"])[f"{1:064x}"][0][0] == second
        row = db.rows("SELECT taken, latitude, longitude, path_folded, file_folded FROM item WHERE id = ?", (first,))
    assert row == [("2019-07-14T10:00:00", 38.7, -9.1, "boats/grösse 0.jpg", "grösse 0.jpg")]
    assert [number for number, _ in iterate_items(store, 2)] == [first, second, third]


def test_items_that_are_replaced_keep_their_number_the_time_of_addition_and_captions_that_stay(store: Store) -> None:
    (number,) = put(store, boat())
    with store.reading() as db:
        before = items_by_id(db, [number])[0]
        captions = dict(db.rows("SELECT name, id FROM caption"))
    assert put(store, boat(labels=(), caption_ids=("new", "boat-0-b"), captions=("a blue boat", "on the sea"))) == [
        number
    ]
    with store.reading() as db:
        after = items_by_id(db, [number])[0]
        assert dict(db.rows("SELECT name, id FROM caption"))["boat-0-b"] == captions["boat-0-b"]
        assert count_items(db) == 1
    assert (after.added_ns, after.captions, after.labels) == (before.added_ns, ("a blue boat", "on the sea"), ())
    assert after.updated_ns > before.updated_ns


def test_two_items_may_swap_their_paths_in_one_write(store: Store) -> None:
    put(store, boat(0), boat(1))
    put(store, boat(0, path=boat(1).path), boat(1, path=boat(0).path))
    with store.reading() as db:
        assert items_by_path(db, [str(boat(1).path)])[str(boat(1).path)][1].id == "boat-0"


def test_rows_have_the_checksum_of_what_is_in_them(store: Store) -> None:
    put(store, boat())
    put(store, boat(labels=()))
    with store.reading() as db:
        for table, columns in (("item", COLUMNS), ("caption", CAPTION_COLUMNS)):
            rows = db.rows(f"SELECT {', '.join(columns)}, crc FROM {table}")
            assert rows
            assert all(row_crc(row[:-1]) == row[-1] for row in rows)


def test_a_removed_item_takes_along_what_no_other_item_has(store: Store) -> None:
    numbers = put(store, boat(0), boat(1), boat(2, content_hash=boat(0).content_hash))
    remove(store, numbers[0], 99)
    with store.reading() as db:
        assert [item.id for item in items_by_id(db, numbers)] == ["boat-1", "boat-2"]
        for table in ("caption", "item_value", "said"):
            assert set(db.rows(f"SELECT DISTINCT item FROM {table}")) <= {(number,) for number in numbers[1:]}
        assert db.value("SELECT count(*) FROM content WHERE kind = 0") == 2
    remove(store, *numbers)
    with store.reading() as db:
        assert [db.value(f"SELECT count(*) FROM {table}") for table in ("content", "value")] == [0, 0]


def test_a_replaced_item_takes_along_what_only_it_had(store: Store) -> None:
    cache = ColumnCache(store)
    put(store, boat(0, labels=("red", "old"), captions=("x", "y")), boat(1, labels=("blue",), captions=("x", "z")))
    with store.reading() as db:
        cache.current(db)
    put(store, boat(0, labels=("red",), captions=("x", "x")))
    with store.reading() as db:
        labels = db.rows("SELECT text FROM value WHERE field = 'label' ORDER BY text")
        assert labels == [("blue",), ("red",)]
        assert db.value("SELECT count(*) FROM content WHERE kind = 1") == 2
        (found,) = (facet for facet in facets(db, cache.current(db), None, 9) if facet.field == "label")
        assert [(value.value, value.count) for value in found.values] == [("blue", 1), ("red", 1)]
    (number,) = put(store, boat(2, labels=("old",)))
    with store.reading() as db:
        old = matching_items(db, cache.current(db), parse_filter("label:old"))
        assert np.flatnonzero(old).tolist() == [number]


def test_each_item_is_one_change_and_the_latest_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, boat(0))
    put(store, boat(1))
    (number,) = put(store, boat(1, labels=()))
    remove(store, number)
    with store.reading() as db:
        assert [item for (item,) in db.rows("SELECT item FROM change ORDER BY id")] == [1, 2, number, number]
    monkeypatch.setattr("diptych.collection.store.store.MAX_CHANGES", 3)
    (new,) = put(store, boat(2))
    with store.reading() as db:
        assert [item for (item,) in db.rows("SELECT item FROM change ORDER BY id")] == [number, number, new]


@pytest.mark.parametrize("kind", [0, 1])
def test_contents_are_numbered_once(store: Store, kind: int) -> None:
    hashes = [f"{number:064x}" for number in range(1200)]
    first = store.write(lambda db: content_ids(db, hashes[:700], kind))
    again = store.write(lambda db: content_ids(db, hashes[::-1], kind))
    assert {name: again[name] for name in first} == first
    assert len(set(again.values())) == len(hashes)
