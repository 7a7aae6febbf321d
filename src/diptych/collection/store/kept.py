"""What is kept beside the items: thumbnails, texts in pictures, albums, saved searches, settings, unread files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from diptych.arrays import IntArray
from diptych.collection.store.crc import row_crc
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_id, put_said
from diptych.collection.store.store import note_changes
from diptych.encoders.image.picture_parts import PictureText, PictureWord

# Settings


def setting(db: Connection, name: str, default: str = "") -> str:
    """Return a setting of the collection."""
    found = db.value("SELECT value FROM meta WHERE name = ?", (name,))
    return default if found is None else str(found)


def put_setting(db: Connection, name: str, value: str) -> None:
    """Store a setting of the collection."""
    db.run(
        "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )
    note_changes(db, "settings")


def unread_files(db: Connection) -> dict[str, str]:
    """Return the files that the last run could not read, each with the reason."""
    return dict(db.rows("SELECT path, reason FROM unread ORDER BY path"))


def put_unread_files(db: Connection, reasons: Mapping[str, str]) -> None:
    """Replace the list of files that could not be read."""
    db.run("DELETE FROM unread")
    # Names of another encoding cannot be stored as they are.
    rows = {name.encode(errors="replace").decode().replace("\0", "?"): reason for name, reason in reasons.items()}
    db.load("unread", ("path", "reason"), rows.items())


# Thumbnails and texts in pictures


def thumbnails(db: Connection, contents: IntArray | Sequence[int]) -> dict[int, bytes]:
    """Return the thumbnails of some contents, as far as there are any."""
    condition, values = db.among("content", contents)
    return {key: bytes(jpeg) for key, jpeg in db.rows(f"SELECT content, jpeg FROM thumbnail WHERE {condition}", values)}


def put_thumbnails(db: Connection, jpegs: Mapping[int, bytes]) -> None:
    """Store thumbnails by content; those that are there are replaced."""
    db.many(
        "INSERT INTO thumbnail (content, jpeg, crc) VALUES (?, ?, ?) "
        "ON CONFLICT (content) DO UPDATE SET jpeg = excluded.jpeg, crc = excluded.crc",
        [(content, jpeg, row_crc((content, jpeg))) for content, jpeg in jpegs.items()],
    )


def picture_texts(db: Connection, contents: IntArray | Sequence[int]) -> dict[int, PictureText]:
    """Return what is written in some pictures, as far as they have been read."""
    condition, values = db.among("content", contents)
    rows = db.rows(f"SELECT content, text, words, boxes FROM picture_text WHERE {condition}", values)
    return {content: _picture_text(*row) for content, *row in rows}


def _picture_text(text: str, words: str, boxes: bytes) -> PictureText:
    corners = np.frombuffer(boxes, dtype="<f4").astype(np.float64).reshape(-1, 4, 2)
    pairs = zip(json.loads(words), np.round(corners, 4).tolist(), strict=True)
    return PictureText(text, tuple(PictureWord(word, tuple(map(tuple, box))) for word, box in pairs))


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
