"""Filters: what columns and SQL decide is what the language says of each item."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.collection.filter import OWN_FIELDS, Filter
from diptych.collection.item import Item
from diptych.collection.store import filtering
from diptych.collection.store.columns import ColumnCache, columns_of
from diptych.collection.store.dialect import Connection
from diptych.collection.store.filtering import matching_items
from diptych.collection.store.items import items_by_id
from diptych.collection.store.store import Store
from diptych.collection.store.writing import put_items, remove_items
from diptych.errors import UnknownNameError

SECOND = 10**9
TEXTS = st.one_of(
    st.sampled_from(
        ["7", "007", "1e3", "nan", "2024-05-17", "2024-05-17 10:30:00", "2024", "Straße", "STRASSE", "a\nb"]
    ),
    st.text('aAbB*?[] ".-0İß', min_size=1, max_size=4),
)
STORED = st.one_of(st.booleans(), st.integers(-20, 20), st.sampled_from([1.5, 7.0, 2**60, 1e300]), TEXTS, st.just(""))
GIVEN = st.one_of(
    st.sampled_from(["7", "7.0", "007", "1000", "2024", "2024-05", "2024-05-17", "2024-05-17 10", "true", "strasse"]),
    st.sampled_from(["nan", "640", "a.JPG", "picture", "2024-05-17T10:30", "*b*", "-05-"]),
    st.text("aAbB*?[].-0ß", min_size=1, max_size=4),
)
METADATA = st.dictionaries(
    st.sampled_from(["x", "y", "path", "a.b", "taken"]),
    st.one_of(STORED, st.lists(STORED, max_size=3), st.fixed_dictionaries({"deep": STORED})),
    max_size=3,
)
FIELDS = st.sampled_from(
    ["x", "y", "meta.x", "meta.path", "a.b", "x.deep", "taken", "year", "missing", "Label", *OWN_FIELDS]
)
COMPARISONS = st.one_of(
    st.builds(
        lambda field, operator, value: Filter(operator, field=field, value=value),
        FIELDS.filter(lambda name: name != "album"),
        st.sampled_from([":", "=", "!=", ">=", "<=", ">", "<"]),
        GIVEN,
    ),
    st.sampled_from(["near:1,2", "within:20km of 1,2", 'within:"0,0 to 1.5,2.25"']).map(Filter.parse),
)
FILTERS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
        inner.map(lambda part: ~part),
    ),
    max_leaves=4,
)


@st.composite
def items(draw: Any) -> list[Item]:
    made = []
    for name in draw(st.lists(TEXTS, unique=True, max_size=5)):
        is_picture, place = draw(st.booleans()), draw(st.sampled_from([{}, {"latitude": 1.5, "longitude": 2.25}]))
        captions = draw(st.lists(TEXTS, max_size=2))
        made.append(
            Item(
                name,
                f"a/{name}.jpg" if is_picture else None,
                "00" * 32 if is_picture else None,
                size=draw(st.sampled_from([0, 7, 640])),
                mtime_ns=draw(st.sampled_from([0, 1_715_941_800 * SECOND + 1])),
                width=draw(st.sampled_from([0, 640])),
                labels=tuple(draw(st.lists(TEXTS, max_size=2))),
                captions=tuple(captions),
                caption_ids=tuple(f"{name}-{place}" for place in range(len(captions))),
                metadata=draw(METADATA) | place,
                added_ns=draw(st.sampled_from([0, 1_715_941_800 * SECOND])),
            )
        )
    return made


def value_of(item: Item, field: str) -> Any:
    """Return what a filter sees of an item."""
    own = {
        "id": item.id,
        "path": item.path,
        "name": None if item.path is None else PurePath(item.path).name,
        "kind": "text" if item.path is None else "picture",
        "label": item.labels,
        "caption": item.captions,
        "width": item.width or None,
        "height": item.height or None,
        "size": None if item.path is None else item.size,
        "added": item.added,
        "updated": item.updated,
        "modified": item.modified or None,
    }
    if field.lower() in OWN_FIELDS:
        return own[field.lower()]
    fields, name = item.fields, field.removeprefix("meta.")
    if name not in fields and name.count(".") == 1:
        outer, _, inner = name.partition(".")
        return fields[outer].get(inner) if isinstance(fields.get(outer), dict) else None
    return fields.get(name)


def put(store: Store, records: list[Item]) -> None:
    def job(db: Connection) -> None:
        remove_items(db, db.ids("SELECT id FROM item"))
        put_items(db, records)

    store.write(job)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items(), st.lists(FILTERS, min_size=1, max_size=8), st.sampled_from([50_000, 0]))
def test_filters_choose_what_the_language_says(
    store: Store, records: list[Item], wanted: list[Filter], max_compared: int
) -> None:
    put(store, records)
    cache = store.__dict__.setdefault("cache", ColumnCache(store))
    with store.reading() as db, pytest.MonkeyPatch.context() as patch:
        patch.setattr(filtering, "MAX_COMPARED", max_compared)
        columns = cache.current(db)
        stored = dict(zip(*_items(db), strict=True))
        for one in wanted:
            expected = [
                number for number, item in stored.items() if one.matches(lambda name, item=item: value_of(item, name))
            ]
            for found in (columns, columns, columns_of(db)):
                mask = matching_items(db, found, one)
                assert np.flatnonzero(mask).tolist() == expected, str(one)
                assert len(mask) == found.size


def _items(db: Connection) -> tuple[list[int], list[Item]]:
    ids = db.ids("SELECT id FROM item ORDER BY id").tolist()
    return ids, items_by_id(db, ids)


def test_albums_are_joined_and_unknown_ones_named(store: Store) -> None:
    put(store, [Item(name, None, None, captions=(name,), caption_ids=(name,)) for name in "abc"])

    def job(db: Connection) -> None:
        db.many(
            "INSERT INTO album (id, title, folded) VALUES (?, ?, ?)",
            [(1, "Summer 24", "summer 24"), (2, "Best", "best")],
        )
        db.many("INSERT INTO album_item (album, item, place) VALUES (?, ?, ?)", [(1, 3, 0), (1, 1, 1), (2, 1, 0)])

    store.write(job)
    with store.reading() as db:
        columns = ColumnCache(store).current(db)

        def found(text: str) -> list[int]:
            return np.flatnonzero(matching_items(db, columns, Filter.parse(text))).tolist()

        assert found('album:"summer 24"') == [1, 3]
        assert found("album:summer* and not album=Best") == [3]
        assert found("album!=Best") == [2, 3]
        with pytest.raises(UnknownNameError, match="did you mean 'Best'"):
            found("album:Bets")
