"""Items as they are stored: by number, name, path and content; their thumbnails and texts; files that are no items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from diptych.arrays import IntArray
from diptych.collection.item import Item
from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.encoders.image.picture_parts import PictureText, PictureWord

_READ = (
    *("name", "path", "size", "mtime_ns", "width", "height", "labels", "metadata"),
    *("added_ns", "updated_ns", "facts", "facts_read"),
)
_SELECT = (
    f"SELECT item.id, content.hash, {', '.join(f'item.{name}' for name in _READ)} "
    "FROM item LEFT JOIN content ON content.id = item.content"
)
_MARKS_AT_ONCE = 1000


def items_by_id(db: Connection, ids: IntArray | Sequence[int]) -> list[Item]:
    """Return the items with some ids, in that order; ids of no item are left out."""
    found = _numbered(db, *db.among("item.id", ids))
    return [found[number] for number in map(int, ids) if number in found]


def items_by_name(db: Connection, names: Iterable[str]) -> dict[str, tuple[int, Item]]:
    """Return the items with some public ids, each with its number."""
    return {item.id: (number, item) for number, item in _with_texts(db, "item.name", names)}


def items_by_path(db: Connection, paths: Iterable[str]) -> dict[str, tuple[int, Item]]:
    """Return the items of some stored paths, each with its number."""
    return {str(item.path): (number, item) for number, item in _with_texts(db, "item.path", paths)}


def items_by_content(db: Connection, hashes: Iterable[str]) -> dict[str, list[tuple[int, Item]]]:
    """Return the items whose files have some hashes, each with its number, those with the smallest first."""
    found: dict[str, list[tuple[int, Item]]] = {}
    for number, item in sorted(_with_texts(db, "content.hash", map(bytes.fromhex, hashes)), key=lambda one: one[0]):
        found.setdefault(str(item.content_hash), []).append((number, item))
    return found


def items_after(db: Connection, after: int, limit: int) -> list[tuple[int, Item]]:
    """Return the next items by number, behind one."""
    numbers = db.rows("SELECT id FROM item WHERE id > ? ORDER BY id LIMIT ?", (after, limit))
    return list(_numbered(db, *db.among("item.id", [number for (number,) in numbers])).items())


def iterate_items(store: Store, at_once: int = 1000) -> Iterator[tuple[int, Item]]:
    """Yield all items with their numbers, in short transactions: one that lasts would hold up the log's checkpoints."""
    after = 0
    while True:
        with store.reading() as db:
            found = items_after(db, after, at_once)
        if not found:
            return
        yield from found
        after = found[-1][0]


def count_items(db: Connection) -> int:
    """Return how many items there are."""
    return int(db.value("SELECT count(*) FROM item"))


def known_contents(db: Connection, hashes: Sequence[str]) -> dict[str, int]:
    """Return the ids of those contents that are stored, by SHA-256."""
    keys = [bytes.fromhex(key) for key in dict.fromkeys(hashes)]
    return {bytes(key).hex(): number for key, number in rows_among(db, "SELECT hash, id FROM content WHERE hash", keys)}


def _numbered(db: Connection, condition: str, values: Sequence[Any]) -> dict[int, Item]:
    rows = db.rows(f"{_SELECT} WHERE {condition} ORDER BY item.id", values)
    return dict(_items(db, rows))


def _with_texts(db: Connection, column: str, texts: Iterable[Any]) -> list[tuple[int, Item]]:
    return list(_items(db, rows_among(db, f"{_SELECT} WHERE {column}", list(texts))))


def _items(db: Connection, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Item]]:
    condition, values = db.among("item", [row[0] for row in rows])
    captions: dict[int, list[tuple[str, str]]] = {}
    for item, name, text in db.rows(
        f"SELECT item, name, text FROM caption WHERE {condition} ORDER BY item, place", values
    ):
        captions.setdefault(item, []).append((name, text))
    for number, content, *columns in rows:
        yield number, _item(content, dict(zip(_READ, columns, strict=True)), captions.get(number, ()))


def _item(content: bytes | None, row: dict[str, Any], captions: Sequence[tuple[str, str]]) -> Item:
    for name in ("metadata", "facts"):
        # Most have none, and this is done for every answer.
        row[name] = {} if row[name] == "{}" else json.loads(row[name])
    row["labels"] = () if row["labels"] == "[]" else tuple(json.loads(row["labels"]))
    return Item(
        id=row.pop("name"),
        content_hash=None if content is None else bytes(content).hex(),
        caption_ids=tuple(name for name, _ in captions),
        captions=tuple(text for _, text in captions),
        **row,
    )


def rows_among(db: Connection, select: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement that ends with a column, where that has one of some texts or bytes."""
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(values), _MARKS_AT_ONCE):
        part = values[start : start + _MARKS_AT_ONCE]
        rows += db.rows(f"{select} IN ({', '.join('?' * len(part))})", part)
    return rows


def unread_files(db: Connection) -> dict[str, str]:
    """Return the files that the last run could not read, each with the reason."""
    return dict(db.rows("SELECT path, reason FROM unread ORDER BY path"))


def put_unread_files(db: Connection, reasons: Mapping[str, str]) -> None:
    """Replace the list of files that could not be read."""
    db.run("DELETE FROM unread")
    # Names of another encoding cannot be stored as they are.
    rows = {name.encode(errors="replace").decode().replace("\0", "?"): reason for name, reason in reasons.items()}
    db.load("unread", ("path", "reason"), rows.items())


def thumbnails(db: Connection, contents: IntArray | Sequence[int]) -> dict[int, bytes]:
    """Return the thumbnails of some contents, as far as there are any."""
    condition, values = db.among("content", contents)
    return {key: bytes(jpeg) for key, jpeg in db.rows(f"SELECT content, jpeg FROM thumbnail WHERE {condition}", values)}


def picture_texts(db: Connection, contents: IntArray | Sequence[int]) -> dict[int, PictureText]:
    """Return what is written in some pictures, as far as they have been read."""
    condition, values = db.among("content", contents)
    rows = db.rows(f"SELECT content, text, words, boxes FROM picture_text WHERE {condition}", values)
    return {content: _picture_text(*row) for content, *row in rows}


def _picture_text(text: str, words: str, boxes: bytes) -> PictureText:
    corners = np.frombuffer(boxes, dtype="<f4").astype(np.float64).reshape(-1, 4, 2)
    pairs = zip(json.loads(words), np.round(corners, 4).tolist(), strict=True)
    return PictureText(text, tuple(PictureWord(word, tuple(map(tuple, box))) for word, box in pairs))
