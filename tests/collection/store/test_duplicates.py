"""Duplicates: pictures that are equal, or linked by the cosine of their features."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.collection.item import Item
from diptych.collection.store import duplicates as duplicates_module
from diptych.collection.store.dialect import Connection
from diptych.collection.store.duplicates import duplicates, exact_duplicates
from diptych.collection.store.points import encoder_id, put_features
from diptych.collection.store.store import Store
from diptych.collection.store.writing import put_items
from diptych.errors import InvalidInputError


def put(store: Store, contents: list[int | None]) -> None:
    items = [
        Item(f"i{n}", None if content is None else f"{n}.png", None if content is None else f"{content:064x}")
        for n, content in enumerate(contents)
    ]
    store.write(lambda db: put_items(db, items))


def test_copies_of_one_picture_are_exact_duplicates(store: Store) -> None:
    put(store, [7, 8, None, 9, 7, 8, 7, None])
    with store.reading() as db:
        groups = exact_duplicates(db)
    assert [(one.exact, one.ids, one.similarity) for one in groups] == [
        (True, ("i0", "i4", "i6"), 1.0),
        (True, ("i1", "i5"), 1.0),
    ]
    assert groups[1].paths == ("1.png", "5.png")


@pytest.mark.parametrize("max_exact", [50_000, 3])
def test_near_duplicates_are_linked_whatever_the_blocks(
    store: Store, monkeypatch: pytest.MonkeyPatch, max_exact: int
) -> None:
    monkeypatch.setattr(duplicates_module, "MAX_EXACT", max_exact)
    put(store, [1, 2, 3, 4, 5, 6, 1, 7])
    angles = np.deg2rad([0.0, 5.0, 10.0, 90.0, 95.0, 180.0])
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1) * [[1], [2], [3], [4], [5], [6]]

    def put_points(db: Connection) -> int:
        encoder = encoder_id(db, "some", "image", 2)
        # The last picture has no features.
        put_features(db, encoder, db.ids("SELECT id FROM content ORDER BY id")[:6], points)
        return encoder

    encoder = store.write(put_points)
    with store.reading() as db:
        n_exact = len(duplicates(db, None, 0.5))
        for at_once in (1000, 2):
            monkeypatch.setattr(duplicates_module, "CONTENTS_AT_ONCE", at_once)
            near = duplicates(db, encoder, float(np.cos(np.deg2rad(6))))[n_exact:]
            assert [(one.exact, one.ids) for one in near] == [(False, ("i0", "i6", "i1", "i2")), (False, ("i3", "i4"))]
            assert [one.similarity for one in near] == pytest.approx([np.cos(np.deg2rad(5))] * 2, abs=1e-3)
        assert duplicates(db, encoder, 0.999)[n_exact:] == duplicates(db, encoder, None)[n_exact:] == []
        assert len(duplicates(db, encoder, -1.0)[n_exact].ids) == 7
        with pytest.raises(InvalidInputError, match="cosine"):
            duplicates(db, encoder, 2.0)


def test_an_empty_collection_has_no_duplicates(store: Store) -> None:
    encoder = store.write(lambda db: encoder_id(db, "some", "image", 2))
    with store.reading() as db:
        assert duplicates(db, encoder, 0.9) == []
