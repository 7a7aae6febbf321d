"""Write items, their texts and thumbnails as rows, each with a checksum; what no item has any more is deleted."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from diptych.arrays import IntArray
from diptych.collection.item import Item
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_id, known_contents, rows_among
from diptych.collection.store.points import prune_contents
from diptych.collection.store.store import note_changes
from diptych.collection.store.values import coordinates_of, prune_values, taken_of, value_ids, values_of
from diptych.collection.store.words import SAID_COLUMNS, put_said_rows, said_rows
from diptych.encoders.image.picture_parts import PictureText
from diptych.errors import InvalidInputError

PICTURE = 0
TEXT = 1
"""Kinds of content."""
COLUMNS = (
    *("name", "path", "path_folded", "file_folded", "content", "size", "mtime_ns", "width", "height"),
    *("added_ns", "updated_ns", "taken", "latitude", "longitude", "labels", "metadata", "facts", "facts_read"),
)
"""The columns of ``item`` but for ``id`` and ``crc``, in the order of the schema."""
CAPTION_COLUMNS = ("name", "item", "place", "text", "folded", "content")
_SAID_COLUMNS = ("item", "caption", *SAID_COLUMNS)


def put_items(
    db: Connection,
    items: Sequence[Item],
    *,
    contents: Mapping[str, int] | None = None,
    replaces: bool = True,
) -> list[int]:
    """Insert items, or replace those of the same public id, with everything that is found by; return their numbers.

    Without ``replaces`` an id that is there is an error. ``contents`` has ids by hash that are known. What only the
    replaced items had is deleted: their pictures' features and points, their texts and values.
    """
    if not items:
        return []
    now_ns = time.time_ns()
    known = {name: (number, added) for number, name, added in _known(db, items)}
    if known and not replaces:
        raise InvalidInputError(f"item {next(iter(known))!r} shares its id with another item; name each once")
    if known:
        numbers = [number for number, _ in known.values()]
        before = _contents_and_values(db, numbers)
        for table in ("item_value", "said"):
            db.run(*_where(f"DELETE FROM {table}", *db.among("item", numbers)))
    pictures = _with_ids(db, (item.content_hash for item in items if item.content_hash is not None), PICTURE, contents)
    rows = {row[0]: row for row in _item_rows(items, pictures, now_ns, known)}
    by_name = {name: number for name, (number, _) in known.items()}
    _replace(db, [(number, rows[name]) for name, number in by_name.items()])
    fresh = [row for name, row in rows.items() if name not in known]
    by_name |= _inserted(db, "item", COLUMNS, fresh)
    caption_numbers = _put_captions(db, items, by_name, len(known), contents)
    _put_values(db, items, by_name)
    put_said(db, [(by_name[item.id], item) for item in items], pictures, caption_numbers)
    note_changes(db, "item", list(by_name.values()))
    if known:
        _prune(db, *before)
    return [by_name[item.id] for item in items]


def remove_items(db: Connection, ids: IntArray | Sequence[int]) -> None:
    """Remove items with everything that no other item has: features, points, thumbnails, texts and values."""
    condition, values = db.among("id", ids)
    numbers = [number for (number,) in db.rows(f"SELECT id FROM item WHERE {condition}", values)]
    if not numbers:
        return
    before = _contents_and_values(db, numbers)
    db.run(f"DELETE FROM item WHERE {condition}", values)
    note_changes(db, "item", numbers)
    _prune(db, *before)


def _contents_and_values(db: Connection, numbers: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Return the contents and the values that some items have."""
    of_items, given = db.among("item.id", numbers)
    of_captions, _ = db.among("item", numbers)
    contents = db.ids(
        f"SELECT content FROM item WHERE content IS NOT NULL AND {of_items} "
        f"UNION SELECT content FROM caption WHERE {of_captions}",
        (*given, *given),
    )
    return contents, db.ids(f"SELECT DISTINCT value FROM item_value WHERE {of_captions}", given)


def _prune(db: Connection, contents: IntArray, values: IntArray) -> None:
    prune_contents(db, contents)
    prune_values(db, values)


def content_ids(db: Connection, hashes: Sequence[str], kind: int) -> dict[str, int]:
    """Return the ids of contents by SHA-256, and store those that are new."""
    known = known_contents(db, hashes)
    fresh = [key for key in dict.fromkeys(hashes) if key not in known]
    numbers = db.next_ids("content", len(fresh))
    # In the order of the index, whose pages are then written one after the other.
    rows = sorted(zip(map(bytes.fromhex, fresh), numbers, strict=True))
    db.load("content", ("hash", "id", "kind"), ((key, number, kind) for key, number in rows))
    return known | dict(zip(fresh, numbers, strict=True))


def _with_ids(db: Connection, hashes: Iterable[str], kind: int, known: Mapping[str, int] | None) -> dict[str, int]:
    """Return the ids of contents, those that are not known from the tables."""
    known = known or {}
    ids = {key: known.get(key, 0) for key in hashes}
    return ids | content_ids(db, [key for key, number in ids.items() if not number], kind)


def _known(db: Connection, items: Sequence[Item]) -> list[tuple[Any, ...]]:
    return rows_among(db, "SELECT id, name, added_ns FROM item WHERE name", [item.id for item in items])


def _item_rows(
    items: Sequence[Item], contents: Mapping[str, int], now_ns: int, known: Mapping[str, tuple[int, int]]
) -> list[tuple[Any, ...]]:
    folded = [(item.path or "").casefold() for item in items]
    fields = [item.fields for item in items]
    latitudes, longitudes = zip(*map(coordinates_of, fields), strict=True)
    columns: dict[str, Sequence[Any]] = {
        "name": [item.id for item in items],
        "path": [item.path for item in items],
        "path_folded": folded,
        "file_folded": [path.rpartition("/")[2] for path in folded],
        "content": [None if item.content_hash is None else contents[item.content_hash] for item in items],
        "size": [item.size for item in items],
        "mtime_ns": [item.mtime_ns for item in items],
        "width": [item.width for item in items],
        "height": [item.height for item in items],
        "added_ns": [known[item.id][1] if item.id in known else now_ns for item in items],
        "updated_ns": [now_ns] * len(items),
        "taken": list(map(taken_of, fields)),
        "latitude": latitudes,
        "longitude": longitudes,
        "labels": [_json(item.labels, "[]") for item in items],
        "metadata": [_json(item.metadata, "{}") for item in items],
        "facts": [_json(item.facts, "{}") for item in items],
        "facts_read": [item.facts_read for item in items],
    }
    return with_crcs([columns[name] for name in COLUMNS])


_encode = json.JSONEncoder(ensure_ascii=False).encode


def _json(value: Any, empty: str) -> str:
    return _encode(value) if value else empty


def _replace(db: Connection, rows: Sequence[tuple[int, tuple[Any, ...]]]) -> None:
    if not rows:
        return
    # Two items may swap their paths: first neither has one.
    db.run(*_where("UPDATE item SET path = NULL", *db.among("id", [number for number, _ in rows])))
    columns = ", ".join(f"{name} = ?" for name in (*COLUMNS, "crc"))
    db.many(f"UPDATE item SET {columns} WHERE id = ?", [(*row, number) for number, row in rows])


def _put_captions(
    db: Connection,
    items: Sequence[Item],
    by_name: Mapping[str, int],
    n_known: int,
    contents_by_hash: Mapping[str, int] | None,
) -> dict[str, int]:
    texts = [text for item in items for text in item.captions]
    hashes = {text: sha256(text.encode()).hexdigest() for text in texts}
    contents = _with_ids(db, hashes.values(), TEXT, contents_by_hash)
    owners = [by_name[item.id] for item in items for _ in item.captions]
    places = [place for item in items for place in range(len(item.captions))]
    names = [name for item in items for name in item.caption_ids]
    folded = [text.casefold() for text in texts]
    of_texts = [contents[hashes[text]] for text in texts]
    rows = {row[0]: row for row in with_crcs([names, owners, places, texts, folded, of_texts])}
    there: dict[str, tuple[Any, ...]] = {}
    if n_known:
        condition, values = db.among("item", list(by_name.values()))
        listed = ", ".join((*CAPTION_COLUMNS, "crc"))
        there = {row[1]: row for row in db.rows(f"SELECT id, {listed} FROM caption WHERE {condition}", values)}
    gone = [row[0] for name, row in there.items() if name not in rows]
    if gone:
        db.run(*_where("DELETE FROM caption", *db.among("id", gone)))
    changed = [(*row, there[name][0]) for name, row in rows.items() if name in there and there[name][1:] != row]
    listed = ", ".join(f"{name} = ?" for name in (*CAPTION_COLUMNS, "crc"))
    db.many(f"UPDATE caption SET {listed} WHERE id = ?", changed)
    fresh = [row for name, row in rows.items() if name not in there]
    return {name: row[0] for name, row in there.items()} | _inserted(db, "caption", CAPTION_COLUMNS, fresh)


def _put_values(db: Connection, items: Sequence[Item], by_name: Mapping[str, int]) -> None:
    values = {by_name[item.id]: values_of(item) for item in items}
    numbers = value_ids(db, {value for some in values.values() for value in some})
    rows = sorted((numbers[value], item) for item, some in values.items() for value in some)
    db.load("item_value", ("value", "item"), rows)


def _inserted(db: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, int]:
    """Insert rows whose first column is the public id, and return their numbers by it."""
    numbers = db.next_ids(table, len(rows))
    db.load(table, ("id", *columns, "crc"), ((number, *row) for number, row in zip(numbers, rows, strict=True)))
    return {row[0]: number for number, row in zip(numbers, rows, strict=True)}


def _where(statement: str, condition: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    return f"{statement} WHERE {condition}", values


def put_said(
    db: Connection, items: Sequence[tuple[int, Item]], contents: Mapping[str, int], captions: Mapping[str, int]
) -> None:
    """Insert what items are found by in words, theirs and their captions', with the texts in their pictures."""
    condition, values = db.among("content", list(contents.values()))
    texts = dict(db.rows(f"SELECT content, text FROM picture_text WHERE {condition}", values))
    rows = [
        (number, captions[item.caption_ids[place - 1]] if place else None, *row)
        for number, item in items
        for place, row in enumerate(said_rows(item, texts.get(contents.get(item.content_hash or "", 0))))
    ]
    put_said_rows(db, rows)


def say_again(db: Connection, ids: IntArray) -> None:
    """Write anew what items are found by in words."""
    condition, values = db.among("item", ids)
    db.run(f"DELETE FROM said WHERE {condition}", values)
    known = np.sort(ids).tolist()
    captions = dict(db.rows(f"SELECT name, id FROM caption WHERE {condition}", values))
    condition, values = db.among("item.id", ids)
    contents = db.rows(
        f"SELECT hash, content.id FROM item JOIN content ON content = content.id WHERE {condition}", values
    )
    by_hash = {bytes(key).hex(): number for key, number in contents}
    put_said(db, list(zip(known, items_by_id(db, known), strict=True)), by_hash, captions)
    note_changes(db, "text", known)


def put_thumbnails(db: Connection, jpegs: Mapping[int, bytes]) -> None:
    """Store thumbnails by content; those that are there are replaced."""
    db.many(
        "INSERT INTO thumbnail (content, jpeg, crc) VALUES (?, ?, ?) "
        "ON CONFLICT (content) DO UPDATE SET jpeg = excluded.jpeg, crc = excluded.crc",
        [(content, jpeg, row_crc((content, jpeg))) for content, jpeg in jpegs.items()],
    )


def put_picture_texts(db: Connection, texts: Mapping[int, PictureText]) -> None:
    """Store what is written in pictures, by content, and let searches for words find it."""
    rows = []
    for content, found in texts.items():
        words = json.dumps([word.text for word in found.words], ensure_ascii=False)
        boxes = np.array([word.corners for word in found.words], dtype="<f4").tobytes()
        row = (content, found.text, words, boxes)
        rows.append((*row, row_crc(row)))
    condition, values = db.among("content", list(texts))
    db.run(f"DELETE FROM picture_text WHERE {condition}", values)
    db.load("picture_text", ("content", "text", "words", "boxes", "crc"), rows)
    say_again(db, db.ids(f"SELECT id FROM item WHERE {condition}", values))


def row_crc(values: Iterable[Any]) -> int:
    """Return the CRC-32 of the values of a row, the same for what is written and what either engine reads back.

    The values are all columns of the table in the order of the schema, without ``id`` and ``crc``.

    >>> row_crc(("a.jpg", 3, None)) == row_crc(("a.jpg", 3.0, None))
    True
    >>> row_crc(("ab", "c")) == row_crc(("a", "bc"))
    False
    """
    # One text that is hashed once takes a third of the time of a checksum for each value.
    return zlib.crc32("".join(map(_described, values)).encode())


def with_crcs(columns: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return the rows of some columns, each with its :func:`row_crc` at the end.

    >>> with_crcs([["a.jpg", "b.jpg"], [3, 3]]) == [(*row, row_crc(row)) for row in (("a.jpg", 3), ("b.jpg", 3))]
    True
    """
    parts = []
    for column in columns:
        # Most columns repeat a few values.
        described = {value: _described(value) for value in set(column)}
        parts.append([described[value] for value in column])
    crcs = [zlib.crc32("".join(row).encode()) for row in zip(*parts, strict=True)]
    return list(zip(*columns, crcs, strict=True))


def _described(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return f"t{len(value)}:{value}"
    if kind is int:
        return f"i{value}:"
    if value is None:
        return "n:"
    if kind is float:
        # A whole number in a column of doubles is read back as one: 3 as 3.0.
        return f"i{int(value)}:" if value.is_integer() else f"f{value!r}:"
    if isinstance(value, int):
        return f"i{int(value)}:"
    return f"b{len(value)}:{zlib.crc32(value)}:"
