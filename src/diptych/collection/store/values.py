"""The distinct values of labels, metadata and facts, as filters compare them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from diptych.arrays import IntArray
from diptych.collection.filter import OWN_FIELDS, filter_name, number_of, text_of
from diptych.collection.item import Item
from diptych.collection.store.dialect import Connection

TEXT = 0
NUMBER = 1
TRUTH = 2
OTHER = 3
LABEL = "label"
MAX_DEPTH = 16
MAX_FIELD_NAME = 600
_KINDS: Mapping[type, int] = {str: TEXT, bool: TRUTH, int: NUMBER, float: NUMBER}


class Value(NamedTuple):
    """A row of ``value``: the field as filters name it, the kind, the text, the text without case, and the number."""

    field: str
    kind: int
    text: str
    folded: str
    number: float | None

    @property
    def key(self) -> int:
        """The hash by which the row is found; texts may be longer than an index allows."""
        digest = blake2b(f"{self.field}\0{self.kind}{self.text}".encode(), digest_size=8)
        return int.from_bytes(digest.digest(), "big", signed=True)


def values_of(item: Item) -> list[Value]:
    """Return the different values of an item: labels, metadata and facts, nested ones and those of lists one by one.

    >>> item = Item("1", None, None, labels=("Dog",), metadata={"exif": {"iso": [100]}, "path": "x"})
    >>> [(value.field, value.text) for value in values_of(item)]
    [('label', 'Dog'), ('exif.iso', '100'), ('exif', "{'iso': [100]}"), ('meta.path', 'x')]
    """
    named = [(LABEL, label) for label in item.labels]
    named += ((filter_name(name), value) for name, value in _nested_fields(item.fields))
    made = (value_of(field, value) for field, value in named if len(field) <= MAX_FIELD_NAME)
    return list(dict.fromkeys(made))


def value_of(field: str, value: Any) -> Value:
    """Return the row of one value, which is neither a list nor None."""
    # Most values are those of many items; 1, 1.0 and True are three of them.
    return _repeated_value(field, value) if isinstance(value, (str, int, float)) else _value_of(field, value)


def _value_of(field: str, value: Any) -> Value:
    kind, text = _KINDS.get(type(value), OTHER), text_of(value)
    number = number_of(value) if kind in (TEXT, NUMBER) else None
    # SQLite keeps no NaN.
    return Value(field, kind, text, text.casefold(), None if number is None or math.isnan(number) else number)


_repeated_value = lru_cache(maxsize=1 << 14, typed=True)(_value_of)


def stored_value(kind: int, text: str) -> str | int | float | bool:
    """Return what a row stands for, so that it is compared as the value was; any other one as its text."""
    if kind == TRUTH:
        return text == "true"
    if kind == NUMBER:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    return text


def field_name(field: str) -> str:
    """Return the name under which values of a filter's field are stored, or that of what every item has.

    >>> field_name("Label"), field_name("camera"), field_name("meta.camera"), field_name("meta.path")
    ('label', 'camera', 'camera', 'meta.path')
    """
    return field.lower() if field.lower() in OWN_FIELDS else filter_name(field.removeprefix("meta."))


def taken_of(fields: Mapping[str, Any]) -> str:
    """Return the date of some fields as a text, empty where there is none."""
    taken = next(_each(fields.get("taken")), "")
    return taken if isinstance(taken, str) else ""


def coordinates_of(fields: Mapping[str, Any]) -> tuple[float, float] | tuple[None, None]:
    """Return latitude and longitude, as filters see them, or None twice."""
    north, east = number_of(fields.get("latitude")), number_of(fields.get("longitude"))
    if north is None or east is None or not (math.isfinite(north) and math.isfinite(east)):
        return None, None
    return north, east


def value_ids(db: Connection, values: Collection[Value]) -> dict[Value, int]:
    """Return the ids of values; those that are not there yet are inserted, by the only writer."""
    known = _known_ids(db, values)
    missing = [value for value in values if value not in known]
    if missing:
        rows = [(*value, value.key) for value in dict.fromkeys(missing)]
        db.many("INSERT INTO value (field, kind, text, folded, number, key) VALUES (?, ?, ?, ?, ?, ?)", rows)
        known |= _known_ids(db, missing)
    return known


def _known_ids(db: Connection, values: Collection[Value]) -> dict[Value, int]:
    condition, given = db.among("key", [value.key for value in values])
    rows = db.rows(f"SELECT field, kind, text, folded, number, id FROM value WHERE {condition}", given)
    stored = {row[:3]: row[5] for row in rows}
    return {value: stored[value[:3]] for value in values if value[:3] in stored}


def prune_values(db: Connection, some: IntArray) -> None:
    """Remove those of some values that no item has."""
    condition, values = db.among("id", some)
    db.run(
        f"DELETE FROM value WHERE {condition} AND NOT EXISTS (SELECT 1 FROM item_value v WHERE v.value = value.id)",
        values,
    )


def _nested_fields(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if all(type(value) in _KINDS for value in fields.values()):
        yield from fields.items()
        return
    inner = dict(_inner_fields({name: value for name, value in fields.items() if isinstance(value, Mapping)}, "", 1))
    # A name with dots at the top stands for itself before it stands for a place inside another one.
    for name, value in {**inner, **fields}.items():
        for one in _each(value):
            yield name, one


def _inner_fields(mapping: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in mapping.items():
        if prefix:
            yield prefix + name, value
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            # Dots separate the names of places, so one inside a nested name cannot be asked for.
            plain = {key: one for key, one in value.items() if "." not in key}
            yield from _inner_fields(plain, f"{prefix}{name}.", depth + 1)


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _each(one)
    elif value is not None:
        yield value
