"""Duplicates: pictures that are equal, or linked by the cosine of their features."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.arrays import FloatArray, IntArray
from diptych.collection.storage.item import Item
from diptych.collection.store import duplicates
from diptych.collection.store.dialect import Connection
from diptych.collection.store.duplicates import exact_duplicates, near_duplicates
from diptych.collection.store.items import next_time, put_items
from diptych.collection.store.store import Store
from diptych.errors import InvalidInputError


def put(store: Store, contents: list[int | None]) -> None:
    items = [
        Item(f"i{n}", None if content is None else f"{n}.png", None if content is None else f"{content:064x}")
        for n, content in enumerate(contents)
    ]
    store.write(lambda db: put_items(db, items, operation="x", now_ns=next_time(db)))


def test_copies_of_one_picture_are_exact_duplicates(store: Store) -> None:
    put(store, [7, 8, None, 9, 7, 8, 7, None])
    with store.reading() as db:
        groups = exact_duplicates(db)
    assert [(one.exact, one.ids, one.similarity) for one in groups] == [
        (True, ("i0", "i4", "i6"), 1.0),
        (True, ("i1", "i5"), 1.0),
    ]
    assert groups[1].paths == ("1.png", "5.png")


def test_near_duplicates_are_linked_whatever_the_blocks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, [1, 2, 3, 4, 5, 6, 1])
    angles = np.deg2rad([0.0, 5.0, 10.0, 90.0, 95.0, 180.0])
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def nearest(db: Connection) -> duplicates.Neighbours:
        contents = db.ids("SELECT id FROM content ORDER BY id")

        def look(some: IntArray) -> tuple[IntArray, FloatArray]:
            cosines = points[np.searchsorted(contents, some)] @ points.T
            order = np.argsort(-cosines, axis=1)[:, :3]
            padding = np.full((len(some), 1), -1)
            scores = np.take_along_axis(cosines, order, axis=1)
            return np.hstack([contents[order], padding]), np.hstack([scores, padding + 2.0])

        return look

    with store.reading() as db:
        for at_once in (1000, 2):
            monkeypatch.setattr(duplicates, "CONTENTS_AT_ONCE", at_once)
            groups = near_duplicates(db, nearest(db), float(np.cos(np.deg2rad(6))))
            assert [(one.exact, one.ids) for one in groups] == [
                (False, ("i0", "i6", "i1", "i2")),
                (False, ("i3", "i4")),
            ]
            assert [one.similarity for one in groups] == pytest.approx([np.cos(np.deg2rad(5))] * 2)
        assert near_duplicates(db, nearest(db), 1.0) == []
        with pytest.raises(InvalidInputError, match="cosine"):
            near_duplicates(db, nearest(db), 2.0)


def test_an_empty_collection_has_no_duplicates(store: Store) -> None:
    with store.reading() as db:
        assert exact_duplicates(db) == []
        assert near_duplicates(db, lambda some: (some, np.zeros(0)), 0.9) == []
