"""Rows of the tables, with nothing but what a test of one part needs."""

from __future__ import annotations

import uuid

from diptych.collection.store.dialect import Connection
from diptych.collection.store.points import PointForm, create_point_tables


def add_content(db: Connection, kind: int = 0) -> int:
    """Insert a content of its own, and return its id."""
    return int(db.value("INSERT INTO content (hash, kind) VALUES (?, ?) RETURNING id", (uuid.uuid4().bytes, kind)))


def add_item(db: Connection, content: int | None) -> int:
    """Insert an item, and return its id."""
    row = (uuid.uuid4().hex, content)
    return int(
        db.value("INSERT INTO item (name, content, added_ns, updated_ns, crc) VALUES (?, ?, 1, 1, 0) RETURNING id", row)
    )


def add_caption(db: Connection, item: int, content: int) -> int:
    """Insert a caption of an item, and return its id."""
    columns = "name, item, place, text, folded, content, crc"
    row = (uuid.uuid4().hex, item, content)
    return int(db.value(f"INSERT INTO caption ({columns}) VALUES (?, ?, 0, '', '', ?, 0) RETURNING id", row))


def add_model(db: Connection, width: int, form: PointForm = "f16") -> int:
    """Insert a search model with its empty point tables, and return its id."""
    names = [uuid.uuid4().hex for _ in range(5)]
    model = db.value(
        "INSERT INTO model (name, fingerprint, image_fingerprint, text_fingerprint, saved, state)"
        " VALUES (?, ?, ?, ?, ?, 'kept') RETURNING id",
        names,
    )
    create_point_tables(db, model, width, form)
    return int(model)
