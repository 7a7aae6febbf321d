"""What filters and counts need of all items, as arrays by id: a base in mapped files, and what has changed since."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.store.derived_arrays import Background, DerivedArrays, newest_arrays, only_maker, save_arrays
from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.lru_cache import LRUCache

MAX_ITEMS_IN_MEMORY = 5_000
MAX_CHANGED = 20_000
MAX_CHANGED_AT_ONCE = 50_000
MAX_REMEMBERED = 64
MAX_COUNTED_ALONE = 10_000
"""So many slices are counted faster one by one than all together."""
MAX_CACHED_VALUES = 300_000
_KIND = "columns"
_MONTH = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")
_NOWHERE = (np.nan, np.nan)
_PAIRS_AT_ONCE = 5_000_000
_BITS = 31
_NO_IDS: IntArray = np.zeros(0, dtype=np.int64)
_SCALE = 10**12
"""Coordinates are read as integers; a millionth of a millionth of a degree is less than any of them was measured to."""


@dataclass(frozen=True)
class Base:
    """All items after one change. ``value_owners`` has the items of each value in turn, from ``value_starts`` on.

    The first five arrays are by item id: 0 is no month, and NaN no coordinate.
    """

    alive: BoolArray
    content: IntArray
    month: IntArray
    latitude: FloatArray
    longitude: FloatArray
    caption_ids: IntArray
    caption_items: IntArray
    caption_contents: IntArray
    value_starts: IntArray
    value_owners: IntArray
    field_values: IntArray
    field_starts: IntArray
    names: tuple[str, ...]
    change: int

    @cached_property
    def fields(self) -> dict[str, IntArray]:
        """The ids of the values of each field."""
        parts = np.split(self.field_values, self.field_starts[1:])
        return dict(zip(self.names, parts, strict=False))


_ARRAYS = [one.name for one in fields(Base) if one.name not in ("names", "change")]


class Captions(NamedTuple):
    """Captions in the order of their ids, each with its item and its content."""

    ids: IntArray
    items: IntArray
    contents: IntArray


_ITEM = np.dtype(
    [("item", "i8"), ("alive", "?"), ("content", "i4"), ("month", "i4"), ("latitude", "f8"), ("longitude", "f8")]
)
_CAPTION = np.dtype([("item", "i8"), ("id", "i8"), ("content", "i8")])
_PAIR = np.dtype([("item", "i8"), ("value", "i8")])


class Patch(NamedTuple):
    """The items changed since the base was made, and their rows, where they are still there."""

    changed: IntArray
    items: AnyArray
    captions: AnyArray
    pairs: AnyArray


@dataclass(frozen=True)
class Columns:
    """The items after one change, as arrays by id; immutable, so that what was found among them is remembered."""

    base: Base
    patch: Patch
    change: int
    names_of_new_values: dict[int, str] = field(default_factory=dict)
    value_rows: LRUCache[str, Any] = field(
        default_factory=lambda: LRUCache(MAX_CACHED_VALUES, lambda rows: len(rows[0]) + 1)
    )
    remembered: LRUCache[Any, Any] = field(default_factory=lambda: LRUCache(MAX_REMEMBERED), compare=False)
    lock: threading.RLock = field(default_factory=threading.RLock, compare=False)

    @property
    def size(self) -> int:
        """How long arrays by item id are."""
        return max(len(self.base.alive), int(self.patch.changed.max(initial=0)) + 1)

    @cached_property
    def alive(self) -> BoolArray:
        """Which ids are those of items."""
        return self._by_item("alive", False)

    @cached_property
    def item_content(self) -> IntArray:
        """The content of the picture of each item, 0 for none."""
        return self._by_item("content", 0)

    @cached_property
    def coordinates(self) -> tuple[FloatArray, FloatArray]:
        """Latitude and longitude of each item, NaN for none."""
        return self._by_item("latitude", np.nan), self._by_item("longitude", np.nan)

    def _by_item(self, name: str, missing: Any) -> AnyArray:
        old: AnyArray = getattr(self.base, name)
        if not len(self.patch.changed):
            return old
        array = np.full(self.size, missing, dtype=old.dtype)
        array[: len(old)] = old
        array[self.patch.changed] = missing
        array[self.patch.items["item"]] = self.patch.items[name]
        return array

    @cached_property
    def captions(self) -> Captions:
        """All captions."""
        base, new = self.base, self.patch.captions
        old = Captions(base.caption_ids, base.caption_items, base.caption_contents)
        known = self.patch.changed[self.patch.changed < len(base.alive)]
        if base.alive[known].any():
            stay = ~self._changed[old.items]
            old = Captions(*(one[stay] for one in old))
        if not len(new):
            return old
        added = (new[name].astype(np.int32) for name in ("id", "item", "content"))
        joined = Captions(*(np.append(one, more) for one, more in zip(old, added, strict=True)))
        order = np.argsort(joined.ids, kind="stable")
        return Captions(*(one[order] for one in joined))

    @cached_property
    def _changed(self) -> BoolArray:
        mask = np.zeros(self.size, dtype=bool)
        mask[self.patch.changed] = True
        return mask

    @cached_property
    def fields(self) -> dict[str, IntArray]:
        """The ids of the values of each field; no item need have them any more."""
        if not self.names_of_new_values:
            return self.base.fields
        new: dict[str, list[int]] = {}
        for number, name in self.names_of_new_values.items():
            new.setdefault(name, []).append(number)
        joined = {name: np.append(self.base.fields.get(name, _NO_IDS), ids) for name, ids in new.items()}
        return self.base.fields | joined

    def items_with(self, values: IntArray) -> BoolArray:
        """Return which items have one of some values, given by id."""
        base, patch = self.base, self.patch
        mask = np.zeros(self.size, dtype=bool)
        old = values[values < len(base.value_starts) - 1]
        mask[_members(base.value_starts, base.value_owners, old)] = True
        if len(patch.changed):
            mask[patch.changed] = False
            mask[patch.pairs["item"][np.isin(patch.pairs["value"], values)]] = True
        return mask

    def value_counts(self, chosen: BoolArray | None) -> IntArray:
        """Return how many of the chosen items, or of all, have each value, by the id of every value in ``fields``."""
        base, pairs, unchanged = self.base, self.patch.pairs, chosen
        if len(self.patch.changed):
            unchanged = ~self._changed if chosen is None else chosen & ~self._changed
        old = _counts(base.value_starts, base.value_owners, unchanged)
        new = np.bincount(pairs["value"] if chosen is None else pairs["value"][chosen[pairs["item"]]])
        newest = max((int(ids[-1]) for ids in self.fields.values()), default=0)
        counts = np.zeros(max(len(old), len(new), newest + 1), dtype=np.int64)
        counts[: len(old)] += old
        counts[: len(new)] += new
        return counts

    @cached_property
    def live_counts(self) -> IntArray:
        """How many items have each value, by its id."""
        return self.value_counts(None)

    @cached_property
    def field_counts(self) -> dict[str, int]:
        """How many values items have in each field that any of them has."""
        counts = {name: int(self.live_counts[ids].sum()) for name, ids in self.fields.items()}
        return {name: count for name, count in counts.items() if count}

    def has_field(self, name: str) -> bool:
        """Return True if any item has a field; the first that is found will do."""
        base, ids = self.base, self.fields.get(name)
        if ids is None:
            return False
        if np.isin(self.patch.pairs["value"], ids).any():
            return True
        known = ids[ids < len(base.value_starts) - 1].tolist()
        owners = (base.value_owners[base.value_starts[value] : base.value_starts[value + 1]] for value in known)
        return any(len(each) and not self._changed[each].all() for each in owners)

    def month_counts(self, chosen: BoolArray | None) -> dict[str, int]:
        """Return how many of the chosen items were taken in each month, or in a year where no more is known."""
        months = self._by_item("month", 0)
        counts = np.bincount(months if chosen is None else months[chosen])
        codes = (code for code in np.flatnonzero(counts).tolist() if code)
        return {f"{code // 100:04}{f'-{code % 100:02}' if code % 100 else ''}": int(counts[code]) for code in codes}


def _members(starts: IntArray, owners: IntArray, places: IntArray) -> IntArray:
    """Return the owners of some places, one after the other."""
    if len(places) < 1000:
        return np.concatenate([owners[:0], *(owners[starts[place] : starts[place + 1]] for place in places.tolist())])
    is_chosen = np.zeros(len(starts) - 1, dtype=bool)
    is_chosen[places] = True
    return np.asarray(owners[np.repeat(is_chosen, np.diff(starts))])


def _counts(starts: IntArray, owners: IntArray, chosen: BoolArray | None) -> IntArray:
    counts = np.diff(starts).astype(np.int64)
    if chosen is None or not len(owners):
        return counts
    is_chosen, filled = chosen[owners], np.flatnonzero(counts)
    if len(filled) > MAX_COUNTED_ALONE:
        counts[filled] = np.add.reduceat(is_chosen.view(np.uint8), starts[filled], dtype=np.int64)
    else:
        ends = zip(starts[filled].tolist(), starts[filled + 1].tolist(), strict=True)
        counts[filled] = [np.count_nonzero(is_chosen[start:end]) for start, end in ends]
    return counts


def _month_code(taken: str) -> int:
    """Return year and month as one number, 0 for what is no date; the month is 0 where it is not known."""
    found = _MONTH.fullmatch(taken[:7])
    return 100 * int(found[1]) + int(found[2] or 0) if found else 0


def base_of(db: Connection) -> Base:
    """Read the columns of all items that a transaction sees, now or, behind views of the past, then."""
    change = int(db.value("SELECT max(id) FROM change") or 0)
    contents, pictures = _pairs(
        db, "SELECT content * {0} + id FROM item WHERE content IS NOT NULL ORDER BY content, id"
    )
    texts = db.ids("SELECT id FROM item WHERE content IS NULL ORDER BY id")
    size = int(max(pictures.max(initial=0), texts.max(initial=0))) + 1
    alive = np.zeros(size, dtype=bool)
    item_content, month_of_item = np.zeros((2, size), dtype=np.int32)
    latitude, longitude = np.full((2, size), np.nan)
    alive[pictures] = alive[texts] = True
    item_content[pictures] = contents
    dated = "FROM item WHERE taken <> ''"
    months = db.rows(f"SELECT substr(taken, 1, 7), count(*) {dated} GROUP BY substr(taken, 1, 7) ORDER BY 1")
    codes = [_month_code(month) for month, _ in months]
    month_of_item[db.ids(f"SELECT id {dated} ORDER BY taken, id")] = np.repeat(codes, [count for _, count in months])
    located = "FROM item WHERE latitude IS NOT NULL AND longitude IS NOT NULL ORDER BY latitude, longitude, id"
    owners = db.ids(f"SELECT id {located}")
    for name, axis in (("latitude", latitude), ("longitude", longitude)):
        axis[owners] = db.ids(f"SELECT CAST(round({name} * {_SCALE}.0) AS {db.words['int']}) {located}") / _SCALE
    items, captions = _pairs(db, "SELECT item * {0} + id FROM caption ORDER BY item, place")
    of_captions, by_content = _pairs(db, "SELECT content * {0} + id FROM caption ORDER BY content, id")
    caption_items, caption_contents = np.zeros((2, int(captions.max(initial=0)) + 1), dtype=np.int32)
    caption_items[captions] = items
    caption_contents[by_content] = of_captions
    captions = np.sort(captions).astype(np.int32)
    names = tuple(name for (name,) in db.rows("SELECT DISTINCT field FROM value ORDER BY field"))
    values = [db.ids("SELECT id FROM value WHERE field = ? ORDER BY id", (name,)) for name in names]
    value_starts, value_owners = _value_owners(db)
    return Base(
        alive=alive,
        content=item_content,
        month=month_of_item,
        latitude=latitude,
        longitude=longitude,
        caption_ids=captions,
        caption_items=caption_items[captions],
        caption_contents=caption_contents[captions],
        value_starts=value_starts,
        value_owners=value_owners,
        field_values=np.concatenate([_NO_IDS, *values]),
        field_starts=_starts([len(ids) for ids in values]),
        names=names,
        change=change,
    )


def _value_owners(db: Connection) -> tuple[IntArray, IntArray]:
    values, n_owners = _pairs(db, "SELECT value * {0} + count(*) FROM item_value GROUP BY value ORDER BY value")
    counts = np.zeros(int(values.max(initial=0)) + 1, dtype=np.int64)
    counts[values] = n_owners
    starts = _starts(counts)
    owners = np.zeros(int(starts[-1]), dtype=np.int32)
    # In parts, because the texts of all pairs at once would take more than the arrays.
    first = 0
    while first < len(counts):
        last = max(first, int(np.searchsorted(starts, starts[first] + _PAIRS_AT_ONCE, side="right")) - 2)
        owners[starts[first] : starts[last + 1]] = db.ids(
            "SELECT item FROM item_value WHERE value >= ? AND value <= ? ORDER BY value, item", (first, last)
        )
        first = last + 1
    return starts, owners


def _pairs(db: Connection, sql: str) -> tuple[IntArray, IntArray]:
    """Return two columns of integers below two billion, read as one number for each row: one scan instead of two."""
    packed = db.ids(sql.format(1 << _BITS))
    return packed >> _BITS, packed & (1 << _BITS) - 1


def _starts(counts: Any) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def columns_of(db: Connection) -> Columns:
    """Return the columns of all items that a transaction sees, without any file."""
    return _columns_from(base_of(db))


def _columns_from(base: Base) -> Columns:
    return Columns(base, Patch(_NO_IDS, *(np.zeros(0, dtype=row) for row in (_ITEM, _CAPTION, _PAIR))), base.change)


def _patched(old: Patch, db: Connection, changed: IntArray) -> Patch:
    """Return a patch with the present rows of items that have changed instead of theirs."""
    condition, values = db.among("id", changed)
    rows = db.rows(f"SELECT id, content, taken, latitude, longitude FROM item WHERE {condition}", values)
    items = [
        (number, True, content or 0, _month_code(taken), *((north, east) if None not in (north, east) else _NOWHERE))
        for number, content, taken, north, east in rows
    ]
    condition, values = db.among("item", changed)
    captions = db.rows(f"SELECT item, id, content FROM caption WHERE {condition} ORDER BY id", values)
    pairs = db.rows(f"SELECT item, value FROM item_value WHERE {condition}", values)
    new = (np.array(items, dtype=_ITEM), np.array(captions, dtype=_CAPTION), np.array(pairs, dtype=_PAIR))
    kept = (rows[~np.isin(rows["item"], changed)] for rows in old[1:])
    joined = (np.append(one, more) for one, more in zip(kept, new, strict=True))
    return Patch(np.union1d(old.changed, changed), *joined)


class ColumnCache:
    """The columns of a store, brought up to date when they are asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._columns: Columns | None = None
        self._background = Background("diptych-columns")
        self.wait = self._background.wait

    def current(self, db: Connection) -> Columns:
        """Return the columns after the last change that a transaction sees, or a later one."""
        last = int(db.value("SELECT max(id) FROM change") or 0)
        with self._lock:
            known = self._columns
            if known is None or known.change < last:
                known = self._followed(db, known, last)
            if not db.writes:
                # What a job has written may still be undone.
                self._columns = known
            return known

    def _followed(self, db: Connection, known: Columns | None, last: int) -> Columns:
        if known is None or _is_long(known):
            base = newest_base(self._store.derived, last)
            if base is not None and (known is None or base.change > known.base.change):
                known = _columns_from(base)
        known = known or self._made(db)
        changed = db.ids("SELECT DISTINCT item FROM change WHERE id > ? AND item IS NOT NULL", (known.change,))
        forgotten = int(db.value("SELECT min(id) FROM change") or 0) > known.change + 1
        if forgotten or len(changed) > MAX_CHANGED_AT_ONCE:
            known, changed = self._made(db), _NO_IDS
        if len(changed):
            known = replace(known, patch=_patched(known.patch, db, changed))
        if _is_long(known):
            if len(known.base.alive) <= MAX_ITEMS_IN_MEMORY:
                return self._made(db)
            if not db.writes:
                self._background.start(self._remake)
        names, rows = known.names_of_new_values, known.value_rows
        newest = max(names, default=int(known.base.field_values.max(initial=0)))
        new = dict(db.rows("SELECT id, field FROM value WHERE id > ? ORDER BY id", (newest,)))
        if db.writes:
            rows = LRUCache(rows.max_size, rows.size_of)
        return Columns(known.base, known.patch, last, names | new if new else names, rows, lock=known.lock)

    def _made(self, db: Connection) -> Columns:
        base = base_of(db)
        if len(base.alive) > MAX_ITEMS_IN_MEMORY and not db.writes:
            with only_maker(self._store.derived, _KIND) as is_only:
                base = save_base(self._store.derived, base) if is_only else base
        return _columns_from(base)

    def _remake(self) -> None:
        with only_maker(self._store.derived, _KIND) as is_only, self._store.reading() as db:
            if is_only:
                save_base(self._store.derived, base_of(db))


def _is_long(known: Columns) -> bool:
    """Return True if a patch is so long that a new base is worth its time."""
    return len(known.patch.changed) > min(MAX_CHANGED, max(1000, len(known.base.alive) // 10))


def newest_base(derived: Path, last: int) -> Base | None:
    """Open the newest base in the files of a collection that is not newer than a change; None if there is none."""
    found = newest_arrays(derived, _KIND, last)
    with suppress(KeyError, TypeError):
        return None if found is None else _mapped(found)
    return None


def save_base(derived: Path, base: Base) -> Base:
    """Write a base to files and return it mapped; one writer at a time."""
    arrays = {name: getattr(base, name) for name in _ARRAYS}
    return _mapped(save_arrays(derived, _KIND, base.change, arrays, {"fields": base.names}))


def _mapped(files: DerivedArrays) -> Base:
    return Base(**files.arrays, names=tuple(files.note["fields"]), change=files.change)
