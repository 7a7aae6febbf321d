"""Pages of items in an order, behind a place that a cursor names: others may write between two pages."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diptych.arrays import BoolArray, IntArray
from diptych.collection.filter import Filter
from diptych.collection.item import Item
from diptych.collection.store.columns import Columns
from diptych.collection.store.dialect import Connection
from diptych.collection.store.filtering import matching_items
from diptych.collection.store.items import items_by_id
from diptych.errors import InvalidInputError

MAX_SORTED = 5_000
"""So many chosen items are sorted by SQL; of more, the rows of all items are read in order until a page is full."""
MAX_ROWS_AT_ONCE = 50_000
Order = Literal["added", "name", "taken", "updated"]
_KEYS: Mapping[str, str] = {"name": "path_folded", "taken": "taken", "updated": "updated_ns"}


@dataclass(frozen=True)
class Page:
    """Some items, the cursor of the next page, None at the end, and how many items all pages have."""

    items: tuple[Item, ...]
    next: str | None
    total: int


def list_items(
    db: Connection,
    columns: Columns,
    wanted: Filter | None = None,
    *,
    order: Order = "added",
    descending: bool = True,
    cursor: str | None = None,
    limit: int = 30,
) -> Page:
    """Return a page of the items that meet a filter; ties in the order are in that of addition.

    What is added, changed or removed between two pages neither repeats nor hides another item.
    """
    if order != "added" and order not in _KEYS:
        raise InvalidInputError(f"items are sorted by added, name, taken or updated, not by {order!r}")
    if limit < 1:
        raise InvalidInputError(f"limit is at least 1, got {limit}")
    after = None if cursor is None else _after(cursor, order, descending)
    mask = columns.alive if wanted is None else matching_items(db, columns, wanted)
    # One more than asked tells whether there is another page.
    if order == "added":
        places = _places_by_addition(mask, descending, None if after is None else int(after[1]), limit + 1)
    elif wanted is not None and (chosen := np.flatnonzero(mask)).size <= MAX_SORTED:
        places = _sorted_places(db, _KEYS[order], descending, after, limit + 1, chosen)
    else:
        places = _scanned_places(db, _KEYS[order], descending, after, limit + 1, mask)
    page = places[:limit]
    items = tuple(items_by_id(db, [number for _, number in page]))
    next_cursor = _cursor(order, descending, page[-1]) if len(places) > limit else None
    return Page(items, next_cursor, int(np.count_nonzero(mask)))


Place = tuple[Any, int]
"""The key of an item in an order, and its id."""


def _places_by_addition(mask: BoolArray, descending: bool, after: int | None, limit: int) -> list[Place]:
    ids = np.flatnonzero(mask)
    if descending:
        ids = ids[: len(ids) if after is None else int(np.searchsorted(ids, after))][::-1]
    elif after is not None:
        ids = ids[int(np.searchsorted(ids, after, side="right")) :]
    return [(None, number) for number in ids[:limit].tolist()]


def _statement(key: str, descending: bool, after: Place | None, condition: str) -> tuple[str, tuple[Any, ...]]:
    sign, direction = ("<", "DESC") if descending else (">", "ASC")
    conditions = [] if after is None else [f"({key}, id) {sign} (?, ?)"]
    if condition:
        conditions.append(condition)
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    sql = f"SELECT {key}, id FROM item {where} ORDER BY {key} {direction}, id {direction} LIMIT ?"
    return sql, () if after is None else tuple(after)


def _sorted_places(
    db: Connection, key: str, descending: bool, after: Place | None, limit: int, chosen: IntArray
) -> list[Place]:
    condition, values = db.among("id", chosen)
    # Without the sign it would read the index of the order, and all items with it.
    sql, given = _statement(f"+{key}" if key.endswith("_ns") else f"{key} || ''", descending, after, condition)
    return [(key_of, number) for key_of, number in db.rows(sql, (*given, *values, limit))]


def _scanned_places(
    db: Connection, key: str, descending: bool, after: Place | None, limit: int, mask: BoolArray
) -> list[Place]:
    found: list[Place] = []
    n_rows = 4 * limit
    while True:
        sql, given = _statement(key, descending, after, "")
        rows = db.rows(sql, (*given, n_rows))
        found += [(key_of, number) for key_of, number in rows if number < len(mask) and mask[number]]
        if len(found) >= limit or len(rows) < n_rows:
            return found[:limit]
        after, n_rows = (rows[-1][0], rows[-1][1]), min(4 * n_rows, MAX_ROWS_AT_ONCE)


def _cursor(order: str, descending: bool, place: Place) -> str:
    document = json.dumps([order, int(descending), *place], separators=(",", ":"))
    return base64.urlsafe_b64encode(document.encode()).decode().rstrip("=")


def _after(cursor: str, order: str, descending: bool) -> Place:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        of, is_descending, key, number = json.loads(text)
        expected = {"added": type(None), "updated": int}.get(order, str)
        if of != order or is_descending != int(descending) or type(key) is not expected or type(number) is not int:
            raise ValueError("it is of another list")
        return key, number
    except (ValueError, TypeError, binascii.Error):
        raise InvalidInputError(
            "the cursor is not of a list in this order; take that of the page before, or begin without one"
        ) from None
