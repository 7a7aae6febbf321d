"""What filters and counts need of all items, as arrays by id: a base in mapped files, and what has changed since."""

from __future__ import annotations

import fcntl
import math
import os
import re
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.atomic_files import damage_in_folder, read_json, seal_folder, write_json
from diptych.collection.filter import text_of
from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.collection.store.values import stored_value
from diptych.lru_cache import LRUCache

MAX_ITEMS_IN_MEMORY = 5_000
MAX_CHANGED = 20_000
MAX_CHANGED_AT_ONCE = 50_000
MAX_REMEMBERED = 64
MAX_CACHED_VALUES = 300_000
NOTE = "note.json"
MAX_WHOLE = 1e15
_MONTH = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")
ITEMS_AT_ONCE = 1 << 18
_NOWHERE = (np.nan, np.nan)
_BITS = 31
_NO_IDS: IntArray = np.zeros(0, dtype=np.int64)
_SCALE = 10**12
"""Coordinates are read as integers; a millionth of a millionth of a degree is less than any of them was measured to."""


@dataclass(frozen=True)
class Base:
    """All items after one change. ``value_owners`` has the items of each value in turn, from ``value_starts`` on.

    The first five arrays are by item id: 0 is no content and no month, and NaN no coordinate. Two are by caption id.
    """

    alive: BoolArray
    content: IntArray
    month: IntArray
    latitude: FloatArray
    longitude: FloatArray
    caption_item: IntArray
    caption_content: IntArray
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


@dataclass(frozen=True, eq=False)
class FieldValues:
    """The values of a field, by id, and those among them that one filter finds as groups with a text each."""

    ids: IntArray
    stored: list[Any]

    def __len__(self) -> int:
        return len(self.stored) + 1

    @cached_property
    def texts(self) -> list[str]:
        """The text of each group as filters write it, in alphabetical order."""
        return sorted({text for text in self._plain if text is not None})

    @cached_property
    def groups(self) -> IntArray:
        """The group of each value, the number of groups for what no filter can ask for."""
        places = {text: place for place, text in enumerate(self.texts)}
        return np.array([len(places) if text is None else places[text] for text in self._plain], dtype=np.int64)

    @cached_property
    def values(self) -> list[Any]:
        """A value of each group."""
        known = dict(zip(reversed(self._plain), reversed(self.stored), strict=True))
        return [known[text] for text in self.texts]

    @cached_property
    def numbers(self) -> FloatArray:
        """Each group as a number, NaN where it is none."""
        are_numbers = [isinstance(one, (int, float)) and not isinstance(one, bool) for one in self.values]
        return np.array(
            [float(one) if is_one else np.nan for one, is_one in zip(self.values, are_numbers, strict=True)]
        )

    @cached_property
    def _plain(self) -> list[str | None]:
        return [filter_text(value) if _is_askable(value) else None for value in self.stored]


def _is_askable(value: Any) -> bool:
    return value != "" and (not isinstance(value, float) or math.isfinite(value))


def whole(value: Any) -> Any:
    """Return a whole number as an integer, and anything else as it is."""
    return int(value) if isinstance(value, float) and value == int(value) and abs(value) < MAX_WHOLE else value


def filter_text(value: Any) -> str:
    """Return a stored value as the filter of a facet writes it."""
    return text_of(whole(value))


@dataclass(frozen=True)
class Columns:
    """The items after one change, as arrays by id; immutable, so that what was found among them is remembered."""

    base: Base
    patch: Patch
    change: int
    names_of_new_values: dict[int, str] = field(default_factory=dict)
    read_values: LRUCache[str, FieldValues] = field(default_factory=lambda: LRUCache(MAX_CACHED_VALUES, len))
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
    def caption_item(self) -> IntArray:
        """The item of each caption, by caption id; 0 for no caption."""
        return self._by_caption("item")

    @cached_property
    def caption_content(self) -> IntArray:
        """The content of each caption, by caption id; 0 for no caption."""
        return self._by_caption("content")

    def _by_caption(self, name: str) -> IntArray:
        base, new = self.base, self.patch.captions
        old: IntArray = getattr(base, f"caption_{name}")
        if not len(self.patch.changed):
            return old
        array = np.zeros(max(len(old), int(new["id"].max(initial=0)) + 1), dtype=old.dtype)
        array[: len(old)] = old
        if self._replaced is not None:
            array[: len(old)][self._replaced[base.caption_item]] = 0
        array[new["id"]] = new[name]
        return array

    @cached_property
    def n_items(self) -> int:
        """How many items there are."""
        return int(np.count_nonzero(self.alive))

    @cached_property
    def n_captions(self) -> int:
        """How many captions there are."""
        return int(np.count_nonzero(self.caption_item))

    @cached_property
    def _replaced(self) -> BoolArray | None:
        """Which items of the base have changed since; None where there are only new ones."""
        changed = self.patch.changed[self.patch.changed < len(self.base.alive)]
        if not self.base.alive[changed].any():
            return None
        mask = np.zeros(self.size, dtype=bool)
        mask[changed] = True
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

    def values_of(self, db: Connection, field: str) -> FieldValues:
        """Return the values of a field; values never change, so only new ones are read."""
        with self.lock:
            known = self.read_values.get(field) or FieldValues(_NO_IDS, [])
            last, newest = int(known.ids.max(initial=0)), int(self.fields[field][-1])
            if last < newest:
                # Not those that a job has just written: they may still be undone.
                sql = "SELECT id, kind, text FROM value WHERE field = ? AND id > ? AND id <= ? ORDER BY id"
                rows = db.rows(sql, (field, last, newest))
                ids = np.append(known.ids, np.array([row[0] for row in rows], dtype=np.int64))
                known = FieldValues(ids, known.stored + [stored_value(kind, text) for _, kind, text in rows])
                self.read_values[field] = known
            return known

    def items_with(self, values: IntArray) -> BoolArray:
        """Return which items have one of some values, given by id."""
        base, patch = self.base, self.patch
        mask = np.zeros(self.size, dtype=bool)
        old = values[values < len(base.value_starts) - 1]
        mask[_members(base.value_starts, base.value_owners, old)] = True
        mask[patch.changed] = False
        if len(patch.changed):
            mask[patch.pairs["item"][np.isin(patch.pairs["value"], values)]] = True
        return mask

    def value_counts(self, chosen: BoolArray | None) -> IntArray:
        """Return how many of the chosen items, or of all, have each value, by the id of every value in ``fields``."""
        base, pairs, unchanged = self.base, self.patch.pairs, chosen
        if self._replaced is not None:
            unchanged = ~self._replaced if chosen is None else chosen & ~self._replaced
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

    def counts_of(self, values: IntArray, counts: IntArray | None = None) -> IntArray:
        """Return some counts, by default the live ones, at values that may be newer, which have none."""
        counts = self.live_counts if counts is None else counts
        found = counts.take(values, mode="clip")
        found[values >= len(counts)] = 0
        return found

    @cached_property
    def field_counts(self) -> dict[str, int]:
        """How many values items have in each field that any of them has."""
        counts = {name: int(self.live_counts[ids].sum()) for name, ids in self.fields.items()}
        return {name: count for name, count in counts.items() if count}

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
    filled = np.flatnonzero(counts)
    counts[filled] = np.add.reduceat(chosen[owners].view(np.uint8), starts[filled], dtype=np.int64)
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
    caption_item, caption_content = (
        _by_second(*_pairs(db, f"SELECT {name} * {{0}} + id FROM caption ORDER BY {name}, {then}"))
        for name, then in (("item", "place"), ("content", "id"))
    )
    names = tuple(name for (name,) in db.rows("SELECT DISTINCT field FROM value ORDER BY field"))
    values = [db.ids("SELECT id FROM value WHERE field = ? ORDER BY id", (name,)) for name in names]
    value_starts, value_owners = _value_owners(db)
    return Base(
        alive=alive,
        content=item_content,
        month=month_of_item,
        latitude=latitude,
        longitude=longitude,
        caption_item=caption_item,
        caption_content=caption_content,
        value_starts=value_starts,
        value_owners=value_owners,
        field_values=np.concatenate([_NO_IDS, *values]),
        field_starts=_starts([len(ids) for ids in values]),
        names=names,
        change=change,
    )


def _value_owners(db: Connection) -> tuple[IntArray, IntArray]:
    last, parts = int(db.value("SELECT max(item) FROM item_value") or 0), [_NO_IDS]
    # In parts, because the text of all pairs at once would take more than the arrays.
    for first in range(0, last + 1, ITEMS_AT_ONCE):
        sql = f"SELECT value * {1 << _BITS} + item FROM item_value WHERE item >= ? AND item < ?"
        parts.append(db.ids(sql, (first, first + ITEMS_AT_ONCE)))
    packed = np.concatenate(parts)
    packed.sort()
    return _starts(np.bincount(packed >> _BITS)), (packed & (1 << _BITS) - 1).astype(np.int32)


def _pairs(db: Connection, sql: str) -> tuple[IntArray, IntArray]:
    """Return two columns of integers below two billion, read as one number for each row: one scan instead of two."""
    packed = db.ids(sql.format(1 << _BITS))
    return packed >> _BITS, packed & (1 << _BITS) - 1


def _by_second(values: IntArray, places: IntArray) -> IntArray:
    """Return values by their places, 0 between them."""
    array = np.zeros(int(places.max(initial=0)) + 1, dtype=np.int32)
    array[places] = values
    return array


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
        self._maker: threading.Thread | None = None

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
            if not db.writes and (self._maker is None or not self._maker.is_alive()):
                self._maker = threading.Thread(target=self._remake, name="diptych-columns", daemon=True)
                self._maker.start()
        names, rows = known.names_of_new_values, known.read_values
        newest = max(names, default=int(known.base.field_values.max(initial=0)))
        new = dict(db.rows("SELECT id, field FROM value WHERE id > ? ORDER BY id", (newest,)))
        if db.writes:
            rows = LRUCache(rows.max_size, rows.size_of)
        return Columns(known.base, known.patch, last, names | new if new else names, rows, lock=known.lock)

    def _made(self, db: Connection) -> Columns:
        base = base_of(db)
        if len(base.alive) > MAX_ITEMS_IN_MEMORY and not db.writes:
            base = save_base(self._store.derived, base)
        return _columns_from(base)

    def _remake(self) -> None:
        # What goes wrong leaves the earlier columns.
        with suppress(Exception), self._store.reading() as db:
            save_base(self._store.derived, base_of(db))

    def wait(self) -> None:
        """Wait for columns that are made in the background."""
        if self._maker is not None:
            self._maker.join()


def _is_long(known: Columns) -> bool:
    """Return True if a patch is so long that a new base is worth its time."""
    return len(known.patch.changed) > min(MAX_CHANGED, max(1000, len(known.base.alive) // 10))


def newest_base(derived: Path, last: int) -> Base | None:
    """Open the newest base in the files of a collection that is not newer than a change; None if there is none."""
    numbers = (int(folder.name.rpartition("-")[2]) for folder in derived.glob("columns-*"))
    for number in sorted((number for number in numbers if number <= last), reverse=True):
        # What another process removes meanwhile, or is damaged, is made again.
        with suppress(OSError, ValueError, KeyError, TypeError):
            return _mapped(derived / f"columns-{number}", number)
    return None


def save_base(derived: Path, base: Base) -> Base:
    """Write a base to files, remove earlier ones, and return it mapped, or as it is while another process does so."""
    derived.mkdir(parents=True, exist_ok=True)
    with (derived / ".columns.lock").open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return base
        folder, draft = derived / f"columns-{base.change}", derived / f".tmp-columns-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        for name in _ARRAYS:
            np.save(draft / f"{name}.npy", getattr(base, name))
        write_json(draft / NOTE, {"fields": base.names})
        seal_folder(draft)
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
        for other in derived.glob("columns-*"):
            if other != folder:
                # What another process has mapped stays readable.
                shutil.rmtree(other, ignore_errors=True)
        return _mapped(folder, base.change)


def _mapped(folder: Path, change: int) -> Base:
    damage = damage_in_folder(folder, all_bytes=False)
    if damage:
        raise ValueError(f"{folder} is damaged ({damage})")
    arrays = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
    return Base(**arrays, names=tuple(read_json(folder / NOTE)["fields"]), change=change)
