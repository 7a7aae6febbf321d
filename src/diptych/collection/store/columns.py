"""What filters and counts need of all items, as arrays by id: a base in mapped files, and what has changed since."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.store.derived_arrays import DerivedArrays, newest_arrays, only_maker, save_arrays
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
_PAIRS_AT_ONCE = 5_000_000
_BITS = 31
_NO_IDS: IntArray = np.zeros(0, dtype=np.int64)
_SCALE = 10**12
"""Coordinates are read as integers; a millionth of a millionth of a degree is less than any of them was measured to."""


@dataclass(frozen=True)
class Base:
    """All items after one change. ``value_owners`` has the items of each value in turn, from ``value_starts`` on."""

    alive: BoolArray
    item_content: IntArray
    caption_ids: IntArray
    caption_items: IntArray
    caption_contents: IntArray
    value_starts: IntArray
    value_owners: IntArray
    field_values: IntArray
    field_starts: IntArray
    months: AnyArray
    month_starts: IntArray
    month_owners: IntArray
    located: IntArray
    latitude: FloatArray
    longitude: FloatArray
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


@dataclass(frozen=True)
class Patch:
    """The items changed since the base was made, and their rows, where they are still there."""

    changed: IntArray
    items: IntArray
    contents: IntArray
    captions: Captions
    pair_values: IntArray
    pair_items: IntArray
    taken_items: IntArray
    months: AnyArray
    located: IntArray
    latitude: FloatArray
    longitude: FloatArray


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
        return _patched(self.base.alive, self.size, self.patch.changed, self.patch.items, True)

    @cached_property
    def item_content(self) -> IntArray:
        """The content of the picture of each item, 0 for none."""
        return _patched(self.base.item_content, self.size, self.patch.changed, self.patch.items, self.patch.contents)

    @cached_property
    def captions(self) -> Captions:
        """All captions."""
        base, new = self.base, self.patch.captions
        old = Captions(base.caption_ids, base.caption_items, base.caption_contents)
        known = self.patch.changed[self.patch.changed < len(base.alive)]
        if base.alive[known].any():
            stay = ~self._changed[old.items]
            old = Captions(*(one[stay] for one in old))
        if not len(new.ids):
            return old
        joined = Captions(*(np.append(one, more.astype(np.int32)) for one, more in zip(old, new, strict=True)))
        if (np.diff(joined.ids) > 0).all():
            return joined
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
            mask[patch.pair_items[np.isin(patch.pair_values, values)]] = True
        return mask

    def value_counts(self, chosen: BoolArray | None) -> IntArray:
        """Return how many of the chosen items, or of all, have each value, by its id."""
        base, patch = self.base, self.patch
        counts = _counts(base.value_starts, base.value_owners, self._unchanged(chosen))
        new = patch.pair_values if chosen is None else patch.pair_values[chosen[patch.pair_items]]
        return _added(counts, np.bincount(new))

    @cached_property
    def live_counts(self) -> IntArray:
        """How many items have each value, by its id."""
        return self.value_counts(None)

    def month_counts(self, chosen: BoolArray | None) -> dict[str, int]:
        """Return how many of the chosen items were taken in each month, named by the first seven signs of the date."""
        base, patch = self.base, self.patch
        counts = _counts(base.month_starts, base.month_owners, self._unchanged(chosen))
        found = dict(zip(base.months.tolist(), counts.tolist(), strict=True))
        for item, month in zip(patch.taken_items.tolist(), patch.months.tolist(), strict=True):
            if chosen is None or chosen[item]:
                found[month] = found.get(month, 0) + 1
        return {month: count for month, count in found.items() if count}

    @cached_property
    def located(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """The items with coordinates, and these."""
        base, patch = self.base, self.patch
        old: tuple[AnyArray, ...] = (base.located, base.latitude, base.longitude)
        if not len(patch.changed):
            return base.located, base.latitude, base.longitude
        stay = ~self._changed[base.located]
        new = (patch.located, patch.latitude, patch.longitude)
        ids, north, east = (np.append(one[stay], more) for one, more in zip(old, new, strict=True))
        return ids, north, east

    def _unchanged(self, chosen: BoolArray | None) -> BoolArray | None:
        if not len(self.patch.changed):
            return chosen
        return ~self._changed if chosen is None else chosen & ~self._changed


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


def _added(left: IntArray, right: IntArray) -> IntArray:
    longer, shorter = (left, right) if len(left) >= len(right) else (right.copy(), left)
    longer[: len(shorter)] += shorter
    return longer


def _patched(old: AnyArray, size: int, gone: IntArray, places: IntArray, new: Any) -> AnyArray:
    """Return an array with other values at some places, and nothing where rows are gone."""
    if not len(gone) and not len(places):
        return old
    array = np.zeros(size, dtype=old.dtype)
    array[: len(old)] = old
    array[gone] = 0
    array[places] = new
    return array


def base_of(db: Connection) -> Base:
    """Read the columns of all items that a transaction sees, now or, behind views of the past, then."""
    change = int(db.value("SELECT max(id) FROM change") or 0)
    contents, pictures = _pairs(
        db, "SELECT content * {0} + id FROM item WHERE content IS NOT NULL ORDER BY content, id"
    )
    texts = db.ids("SELECT id FROM item WHERE content IS NULL ORDER BY id")
    size = int(max(pictures.max(initial=0), texts.max(initial=0))) + 1
    alive, item_content = np.zeros(size, dtype=bool), np.zeros(size, dtype=np.int32)
    alive[pictures] = alive[texts] = True
    item_content[pictures] = contents
    items, captions = _pairs(db, "SELECT item * {0} + id FROM caption ORDER BY item, place")
    of_captions, by_content = _pairs(db, "SELECT content * {0} + id FROM caption ORDER BY content, id")
    caption_items = np.zeros(int(captions.max(initial=0)) + 1, dtype=np.int32)
    caption_contents = np.zeros_like(caption_items)
    caption_items[captions] = items
    caption_contents[by_content] = of_captions
    captions = np.sort(captions).astype(np.int32)
    names = tuple(name for (name,) in db.rows("SELECT DISTINCT field FROM value ORDER BY field"))
    values = [db.ids("SELECT id FROM value WHERE field = ? ORDER BY id", (name,)) for name in names]
    dated = "FROM item WHERE taken <> ''"
    months = db.rows(f"SELECT substr(taken, 1, 7), count(*) {dated} GROUP BY substr(taken, 1, 7) ORDER BY 1")
    located = "FROM item WHERE latitude IS NOT NULL AND longitude IS NOT NULL ORDER BY latitude, longitude, id"
    north, east = (
        db.ids(f"SELECT CAST(round({axis} * {_SCALE}.0) AS {db.words['int']}) {located}") / _SCALE
        for axis in ("latitude", "longitude")
    )
    value_starts, value_owners = _value_owners(db)
    return Base(
        alive=alive,
        item_content=item_content,
        caption_ids=captions,
        caption_items=caption_items[captions],
        caption_contents=caption_contents[captions],
        value_starts=value_starts,
        value_owners=value_owners,
        field_values=np.concatenate([_NO_IDS, *values]),
        field_starts=_starts([len(ids) for ids in values]),
        months=np.array([month for month, _ in months], dtype="U7"),
        month_starts=_starts([count for _, count in months]),
        month_owners=db.ids(f"SELECT id {dated} ORDER BY taken, id").astype(np.int32),
        located=db.ids(f"SELECT id {located}"),
        latitude=north,
        longitude=east,
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
    base = base_of(db)
    return Columns(base, _patch_of(db, _NO_IDS), base.change)


def _patch_of(db: Connection, changed: IntArray) -> Patch:
    condition, values = db.among("id", changed)
    rows = db.rows(f"SELECT id, content, substr(taken, 1, 7), latitude, longitude FROM item WHERE {condition}", values)
    condition, values = db.among("item", changed)
    captions = db.rows(f"SELECT id, item, content FROM caption WHERE {condition} ORDER BY id", values)
    pair_values, pair_items = _integers(db.rows(f"SELECT value, item FROM item_value WHERE {condition}", values), 2)
    dated = [(number, month) for number, _, month, *_ in rows if month]
    located = [(number, north, east) for number, _, _, north, east in rows if north is not None and east is not None]
    return Patch(
        changed,
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([row[1] or 0 for row in rows], dtype=np.int64),
        Captions(*_integers(captions, 3)),
        pair_values,
        pair_items,
        np.array([number for number, _ in dated], dtype=np.int64),
        np.array([month for _, month in dated], dtype="U7"),
        np.array([row[0] for row in located], dtype=np.int64),
        np.array([row[1] for row in located], dtype=np.float64),
        np.array([row[2] for row in located], dtype=np.float64),
    )


def _integers(rows: list[tuple[Any, ...]], n_columns: int) -> IntArray:
    return np.array(rows, dtype=np.int64).reshape(-1, n_columns).T


def _joined(old: Patch, new: Patch) -> Patch:
    """Return the rows of a patch, those of newer ones instead of theirs."""
    if not len(old.changed):
        return new
    items, captions, pairs, dated, located = (
        ~np.isin(ids, new.changed)
        for ids in (old.items, old.captions.items, old.pair_items, old.taken_items, old.located)
    )
    return Patch(
        np.union1d(old.changed, new.changed),
        np.append(old.items[items], new.items),
        np.append(old.contents[items], new.contents),
        Captions(*(np.append(one[captions], more) for one, more in zip(old.captions, new.captions, strict=True))),
        np.append(old.pair_values[pairs], new.pair_values),
        np.append(old.pair_items[pairs], new.pair_items),
        np.append(old.taken_items[dated], new.taken_items),
        np.append(old.months[dated], new.months),
        np.append(old.located[located], new.located),
        np.append(old.latitude[located], new.latitude),
        np.append(old.longitude[located], new.longitude),
    )


class ColumnCache:
    """The columns of a store, brought up to date when they are asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._columns: Columns | None = None
        self._remade: Base | None = None
        self._thread: threading.Thread | None = None

    def current(self, db: Connection) -> Columns:
        """Return the columns after the last change that a transaction sees, or a later one."""
        last = int(db.value("SELECT max(id) FROM change") or 0)
        with self._lock:
            known = self._columns
            if self._remade is not None and not db.writes:
                known, self._remade = _columns_from(db, self._remade), None
            if known is None or known.change < last:
                known = self._followed(db, known, last)
            if not db.writes:
                # What a job has written may still be undone.
                self._columns = known
            return known

    def wait(self) -> None:
        """Wait for a base that is being made in the background."""
        if self._thread is not None:
            self._thread.join()

    def _followed(self, db: Connection, known: Columns | None, last: int) -> Columns:
        if known is None:
            base = newest_base(self._store.derived, last)
            known = self._made(db) if base is None else _columns_from(db, base)
        changed = db.ids("SELECT DISTINCT item FROM change WHERE id > ? AND item IS NOT NULL", (known.change,))
        forgotten = int(db.value("SELECT min(id) FROM change") or 0) > known.change + 1
        if forgotten or len(changed) > MAX_CHANGED_AT_ONCE:
            known, changed = self._made(db), _NO_IDS
        patch = _joined(known.patch, _patch_of(db, changed)) if len(changed) else known.patch
        n_items = len(known.base.alive)
        if len(patch.changed) > min(MAX_CHANGED, max(1000, n_items // 10)):
            if n_items <= MAX_ITEMS_IN_MEMORY:
                return self._made(db)
            if not db.writes:
                self._remake_in_background()
        names, rows = known.names_of_new_values, known.value_rows
        newest = max(names, default=int(known.base.field_values.max(initial=0)))
        new = dict(db.rows("SELECT id, field FROM value WHERE id > ?", (newest,)))
        if db.writes:
            rows = LRUCache(rows.max_size, rows.size_of)
        return Columns(known.base, patch, last, names | new if new else names, rows, lock=known.lock)

    def _made(self, db: Connection) -> Columns:
        base = base_of(db)
        if len(base.alive) > MAX_ITEMS_IN_MEMORY and not db.writes:
            with only_maker(self._store.derived, _KIND) as is_only:
                base = save_base(self._store.derived, base) if is_only else base
        return _columns_from(db, base)

    def _remake_in_background(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._remake, name="diptych-columns", daemon=True)
            self._thread.start()

    def _remake(self) -> None:
        """Make a new base, or take that of another process; what goes wrong leaves the old one."""
        derived = self._store.derived
        with suppress(Exception), only_maker(derived, _KIND) as is_only, self._store.reading() as db:
            known, last = self._columns, int(db.value("SELECT max(id) FROM change") or 0)
            newest = newest_base(derived, last)
            if newest is None or known is None or newest.change <= known.base.change:
                newest = save_base(derived, base_of(db)) if is_only else None
            if newest is not None:
                with self._lock:
                    self._remade = newest


def _columns_from(db: Connection, base: Base) -> Columns:
    return Columns(base, _patch_of(db, _NO_IDS), base.change)


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
