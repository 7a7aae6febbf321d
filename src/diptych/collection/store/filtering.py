"""Which items meet a filter: distinct values are compared in Python or SQL, and arrays say which items have them."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from diptych.arrays import BoolArray, IntArray
from diptych.collection.filter import OWN_FIELDS, Filter, compare, given_date, number_of
from diptych.collection.item import iso_time
from diptych.collection.store.columns import Columns
from diptych.collection.store.dialect import Connection
from diptych.collection.store.values import field_name, stored_value
from diptych.errors import UnknownNameError

MAX_COMPARED = 50_000
"""Of more distinct values, SQL chooses those that may meet a comparison."""
_NUMBERS = {"width": "width <> 0", "height": "height <> 0", "size": "path IS NOT NULL"}
_TIMES = {"added": "added_ns", "updated": "updated_ns", "modified": "mtime_ns"}
_SECOND = 10**9
_MAX_SECONDS = 2**33
_MONTH_OR_DAY = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?")
_WILDCARDS = re.compile(r"[*?]+")
Condition = tuple[str, list[Any], bool]
"""A condition of SQL, its values, and whether it holds for nothing else than what meets the comparison."""


def matching_items(db: Connection, columns: Columns, wanted: Filter) -> BoolArray:
    """Return which items meet a filter, by id; it is remembered as long as nothing changes."""
    with columns.lock:
        packed = columns.remembered.get(wanted)
    if packed is None:
        mask = _matching(db, columns, wanted) & columns.alive
        with columns.lock:
            columns.remembered[wanted] = np.packbits(mask)
        return mask
    return np.unpackbits(packed, count=columns.size).view(bool)


def _matching(db: Connection, columns: Columns, wanted: Filter) -> BoolArray:
    operator = wanted.operator
    if operator in ("and", "or"):
        join = np.logical_and if operator == "and" else np.logical_or
        return reduce(join, (_matching(db, columns, part) for part in wanted.parts))
    if operator == "not":
        return ~_matching(db, columns, wanted.parts[0])
    if operator == "!=":
        return ~_matching(db, columns, replace(wanted, operator="="))
    if wanted.is_geographic:
        return wanted.region.holds(*columns.coordinates)
    name = field_name(wanted.field)
    if name == "kind":
        texts = _mask(columns, db.ids("SELECT id FROM item WHERE path IS NULL"))
        kinds = {"text": texts, "picture": ~texts}
        meant = [mask for kind, mask in kinds.items() if _meets(kind, wanted)]
        return reduce(np.logical_or, meant, np.zeros(columns.size, dtype=bool))
    if name in OWN_FIELDS and name != "label":
        return _mask(columns, _own(db, name, wanted))
    return columns.items_with(_values(db, columns, name, wanted))


def _mask(columns: Columns, ids: IntArray) -> BoolArray:
    mask = np.zeros(columns.size, dtype=bool)
    mask[ids[ids < columns.size]] = True
    return mask


def _meets(stored: Any, wanted: Filter) -> bool:
    return compare(stored, wanted.operator, wanted.value, whole=field_name(wanted.field) == "label")


def _meeting(rows: Iterable[tuple[int, Any]], wanted: Filter) -> IntArray:
    return np.array([number for number, stored in rows if _meets(stored, wanted)], dtype=np.int64)


def _own(db: Connection, name: str, wanted: Filter) -> IntArray:
    """Return the items of which a field that every item has meets a comparison."""
    if name == "album":
        return _album_items(db, wanted)
    if name in _NUMBERS:
        return _with_number(db, name, wanted)
    if name in _TIMES:
        return _with_time(db, name, wanted)
    if name == "caption":
        return _with_text(db, ("item", "caption", "text", "text", "folded"), wanted)
    if name == "id":
        return _with_text(db, ("id", "item", "name", "name", None), wanted)
    if name == "path":
        return _with_text(db, ("id", "item", "path", "path", "path_folded"), wanted)
    return _with_text(db, ("id", "item", "path", None, "file_folded"), wanted)


def _album_items(db: Connection, wanted: Filter) -> IntArray:
    albums = db.rows("SELECT id, title FROM album ORDER BY folded")
    meant = [number for number, title in albums if compare(title, wanted.operator, wanted.value, whole=True)]
    if not meant:
        # Who asks for an album that is not there hears of it, instead of finding nothing.
        raise UnknownNameError("album", wanted.value, [title for _, title in albums])
    condition, values = db.among("album", meant)
    return db.ids(f"SELECT DISTINCT item FROM album_item WHERE {condition}", values)


def _with_number(db: Connection, column: str, wanted: Filter) -> IntArray:
    given = number_of(wanted.value)
    if given is not None:
        operator = "=" if wanted.operator == ":" else wanted.operator
        if math.isnan(given):
            return np.zeros(0, dtype=np.int64)
        return db.ids(f"SELECT id FROM item WHERE {_NUMBERS[column]} AND {column} {operator} ?", (given,))
    rows = db.rows(f"SELECT DISTINCT {column} FROM item WHERE {_NUMBERS[column]}")
    condition, values = db.among(column, _meeting(((number, number) for (number,) in rows), wanted))
    return db.ids(f"SELECT id FROM item WHERE {_NUMBERS[column]} AND {condition}", values)


def _with_time(db: Connection, name: str, wanted: Filter) -> IntArray:
    column = _TIMES[name]
    there = "path IS NOT NULL" if name == "modified" else "1 = 1"
    operator = wanted.operator
    if operator == ":" and _MONTH_OR_DAY.fullmatch(wanted.value):
        # Only the beginning of a time looks like that.
        operator = "="
    if operator == ":":
        seconds = f"{column} / {_SECOND}"
        rows = ((number, iso_time(number * _SECOND)) for (number,) in db.rows(f"SELECT DISTINCT {seconds} FROM item"))
        condition, values = db.among(seconds, _meeting(rows, wanted))
        return db.ids(f"SELECT id FROM item WHERE {there} AND {condition}", values)
    first, after = (_first_second(wanted, operator) for operator in (">=", ">"))
    ends = {"=": (first, after), ">=": (first, None), ">": (after, None), "<": (None, first), "<=": (None, after)}
    low, high = (_MAX_SECONDS * sign if end is None else end for end, sign in zip(ends[operator], (-1, 1), strict=True))
    limits = (low * _SECOND, high * _SECOND)
    return db.ids(f"SELECT id FROM item WHERE {there} AND {column} >= ? AND {column} < ?", limits)


def _first_second(wanted: Filter, operator: Any) -> int:
    """Return the first second of all times that are written as later than the given text, or as equal."""
    times = range(-_MAX_SECONDS, _MAX_SECONDS)
    place = bisect_left(
        times, True, key=lambda second: compare(iso_time(second * _SECOND), operator, wanted.value, whole=False)
    )
    return place - _MAX_SECONDS


def _with_text(db: Connection, source: tuple[str, str, str, str | None, str | None], wanted: Filter) -> IntArray:
    """Return the items with a text that meets a comparison; the source is owner, table, and columns."""
    owner, table, column, text, folded = source
    condition, values, is_exact = text_condition(db, wanted, text, folded)
    if is_exact:
        return db.ids(f"SELECT DISTINCT {owner} FROM {table} WHERE {column} IS NOT NULL AND {condition}", values)
    rows = db.rows(f"SELECT {owner}, {column} FROM {table} WHERE {column} IS NOT NULL AND {condition}", values)
    if text is None:
        rows = [(number, path.rpartition("/")[2]) for number, path in rows]
    return _meeting(rows, wanted)


def _values(db: Connection, columns: Columns, field: str, wanted: Filter) -> IntArray:
    """Return the values of a field that meet a comparison, by their ids."""
    ids = columns.fields.get(field)
    if ids is None:
        return np.zeros(0, dtype=np.int64)
    if len(ids) <= MAX_COMPARED:
        known = columns.values_of(db, field)
        return _meeting(zip(known.ids.tolist(), known.stored, strict=True), wanted)
    condition, values, is_exact = text_condition(db, wanted, "text", "folded", has_numbers=True)
    if is_exact:
        return db.ids(f"SELECT id FROM value WHERE field = ? AND {condition}", (field, *values))
    rows = db.rows(f"SELECT id, kind, text FROM value WHERE field = ? AND {condition}", (field, *values))
    return _meeting(((number, stored_value(kind, text)) for number, kind, text in rows), wanted)


def text_condition(
    db: Connection, wanted: Filter, text: str | None, folded: str | None, *, has_numbers: bool = False
) -> Condition:
    """Return the condition that columns meet a comparison as :func:`compare` decides it, or one that is weaker.

    With ``has_numbers`` the row has a kind and a number, where the text is one; otherwise all are texts.
    """
    everything: Condition = ("1 = 1", [], False)
    number, given, operator = number_of(wanted.value), wanted.value, wanted.operator
    if number is not None and (math.isnan(number) or (not has_numbers and operator not in (":", "="))):
        return everything
    if operator == ":":
        if folded is None:
            return everything
        condition, values, is_exact = _like(db, wanted, folded)
        by_number = "kind = 1 AND number IS NOT NULL"
    else:
        date = given_date(given)
        if text is None:
            # Of names of files there is the folded column alone.
            is_equal = operator == "=" and date is None and folded is not None
            return (f"{folded} = ?", [given.casefold()], False) if is_equal else everything
        condition, values, is_exact = f"{text} {operator} ?", [given], True
        if date is not None:
            cut = f"substr(replace({text}, ' ', 'T'), 1, {len(date)}) {operator} ?"
            condition, values = f"CASE WHEN {_is_date(text)} THEN {cut} ELSE {condition} END", [date, given]
        # An id of digits is a name: 007 is not 7.
        by_number = "kind = 1 AND number IS NOT NULL" if operator == "=" else "number IS NOT NULL"
        if number is not None and operator != "=":
            # A number to Python, though it has none here.
            condition = f"trim(folded) NOT IN ('nan', '+nan', '-nan') AND ({condition})"
    if number is not None and has_numbers:
        sign = "=" if operator == ":" else operator
        return f"(CASE WHEN {by_number} THEN number {sign} ? ELSE {condition} END)", [number, *values], is_exact
    return f"({condition})", values, is_exact


def _like(db: Connection, wanted: Filter, folded: str) -> Condition:
    given = wanted.value.casefold()
    if "*" in given or "?" in given:
        return _like_pattern(db, given, folded)
    if field_name(wanted.field) == "label":
        return f"{folded} = ?", [given], True
    return db.contains(folded), [given], True


def _like_pattern(db: Connection, given: str, folded: str) -> Condition:
    """Return the condition on the beginning, the end and the longest part; often that is the whole pattern."""
    parts = _WILDCARDS.split(given)
    first, last, longest = parts[0], parts[-1], max(parts, key=len)
    conditions = [f"length({folded}) >= ?"]
    values: list[Any] = [len("".join(parts))]
    if first:
        conditions, values = [*conditions, f"substr({folded}, 1, {len(first)}) = ?"], [*values, first]
    if last:
        cut = f"substr({folded}, length({folded}) - {len(last) - 1})"
        conditions, values = [*conditions, f"{cut} = ?"], [*values, last]
    if longest not in (first, last):
        conditions, values = [*conditions, db.contains(folded)], [*values, longest]
    is_exact = "?" not in given and (len(parts) == 2 or (len(parts) == 3 and not first and not last))
    return " AND ".join(conditions), values, is_exact


def _is_date(text: str) -> str:
    digits = (f"substr({text}, {place}, 1) BETWEEN '0' AND '9'" for place in (1, 2, 3, 4, 6, 7))
    return " AND ".join((*digits, f"substr({text}, 5, 1) = '-'"))
