"""Points and features in the tables: rows of float16, codes or float32, by content."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from diptych.arrays import AnyArray, IntArray
from diptych.collection.retriever_protocol import PointKind, Side
from diptych.collection.store.dialect import Connection, in_words
from diptych.errors import InvalidInputError

POINT_KINDS: tuple[PointKind, ...] = ("image", "text", "region")
ROWS_AT_ONCE = 1 << 15
IDS_AT_ONCE = 10_000

PointForm = Literal["f16", "bits"]
PointBlock = tuple[IntArray, IntArray, IntArray, AnyArray]
"""Ids, contents, parts and vectors of points."""

_POINTS = """CREATE TABLE {table} (
    id {{id}},
    content {{int}} NOT NULL,
    part {{int}} NOT NULL DEFAULT 0,
    v {vector} NOT NULL,
    crc {{int}} NOT NULL,
    UNIQUE (content, part)
) {{strict}}"""


def point_table(model: int, side: PointKind) -> str:
    """Return the name of the table that has the points of a model.

    >>> point_table(3, "image")
    'point_3_image'
    """
    return f"point_{int(model)}_{side}"


def create_point_tables(db: Connection, model: int, width: int, form: PointForm) -> None:
    """Make the empty tables of a model's points, of pictures, texts and regions, and note their form in its row.

    ``width`` counts the float16 numbers or the bytes of a point.
    """
    for side in POINT_KINDS:
        vector = "{blob}" if db.engine == "sqlite" else f"halfvec({width})" if form == "f16" else f"bit({8 * width})"
        text = _POINTS.format(table=point_table(model, side), vector=vector)
        db.run(in_words(text, db.words))
    db.run("UPDATE model SET width = ?, form = ? WHERE id = ?", (width, form, model))


def point_form(db: Connection, model: int) -> tuple[int, Any]:
    """Return the width and the dtype of a model's points; width 0 where it has no tables yet, or is gone."""
    rows = db.rows("SELECT width, form FROM model WHERE id = ?", (model,))
    width, form = rows[0] if rows else (0, "")
    return int(width), np.uint8 if form == "bits" else np.float16


def drop_point_tables(db: Connection, model: int) -> None:
    """Remove all points of a model, with their tables."""
    for side in POINT_KINDS:
        db.run(f"DROP TABLE IF EXISTS {point_table(model, side)}")


def point_crc(content: int, part: int, row: bytes) -> int:
    """Return the checksum of a point or a feature: of its bytes and whose they are."""
    return zlib.crc32(row, (content * 65_537 + part) & 0xFFFFFFFF)


def put_points(
    db: Connection,
    model: int,
    side: PointKind,
    contents: Sequence[int] | IntArray,
    vectors: AnyArray,
    parts: Sequence[int] | IntArray | int = 0,
) -> None:
    """Store points: rows as :meth:`Scoring.stored` returns them. All that these contents had before are replaced.

    All regions of a content are given at once. A replaced point has a new id, so that vector files see it.
    """
    ids = np.asarray(contents, dtype=np.int64)
    numbers = np.broadcast_to(np.asarray(parts, dtype=np.int64), ids.shape)
    remove_points(db, model, side, ids)
    _insert(db, point_table(model, side), ("content", "part"), (ids, numbers), as_stored(vectors))


def as_stored(vectors: AnyArray) -> AnyArray:
    """Return points as they lie in the tables: float16, or codes as they are; raise for numbers beyond float16."""
    rows = np.asarray(vectors)
    if rows.dtype == np.uint8:
        return np.ascontiguousarray(rows)
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(rows, dtype=np.float16)
    if not np.isfinite(rows).all():
        raise InvalidInputError("a point has coordinates that are not finite or beyond ±65504, the range of float16")
    return rows


def remove_points(db: Connection, model: int, side: PointKind, contents: Sequence[int] | IntArray) -> None:
    """Remove all points of some contents."""
    if not point_form(db, model)[0]:
        return
    for ids in _pieces(contents):
        condition, values = db.among("content", ids)
        db.run(f"DELETE FROM {point_table(model, side)} WHERE {condition}", values)


def read_points(
    db: Connection, model: int, side: PointKind, contents: Sequence[int] | IntArray | None = None
) -> tuple[IntArray, IntArray, AnyArray]:
    """Return (contents, parts, vectors) of some contents or of all, ordered by content and part.

    Contents without a point are left out.
    """
    if contents is None:
        block = _joined(db, model, side, point_blocks(db, model, side))
    else:
        block = points_with(db, model, side, contents, "content")
    _, owners, parts, vectors = block
    order = np.lexsort((parts, owners))
    return owners[order], parts[order], vectors[order]


def point_blocks(
    db: Connection, model: int, side: PointKind, after: int = 0, up_to: int | None = None
) -> Iterator[PointBlock]:
    """Yield (ids, contents, parts, vectors) of the points with ids after one, in the order of ids."""
    bound = "" if up_to is None else f" AND id <= {int(up_to)}"
    while True:
        block = _read(db, model, side, f"id > {int(after)}{bound} ORDER BY id LIMIT {ROWS_AT_ONCE}")
        if len(block[0]):
            yield block
            after = int(block[0][-1])
        if len(block[0]) < ROWS_AT_ONCE:
            return


def points_with(
    db: Connection, model: int, side: PointKind, numbers: Sequence[int] | IntArray, key: str = "id"
) -> PointBlock:
    """Return (ids, contents, parts, vectors) of the points with some ids that are still there, or contents, by id."""
    pieces = (db.among(key, some) for some in _pieces(np.unique(np.asarray(numbers, dtype=np.int64))))
    return _joined(db, model, side, (_read(db, model, side, *piece) for piece in pieces))


def _joined(db: Connection, model: int, side: PointKind, blocks: Iterable[PointBlock]) -> PointBlock:
    found = list(blocks) or [_read(db, model, side, "id < 0")]
    ids, contents, parts, vectors = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(ids)
    return ids[order], contents[order], parts[order], vectors[order]


def point_count(db: Connection, model: int, side: PointKind) -> int:
    """Return how many points there are."""
    return int(db.value(f"SELECT count(*) FROM {point_table(model, side)}")) if point_form(db, model)[0] else 0


def last_point(db: Connection, model: int, side: PointKind) -> int:
    """Return the highest id of a point, 0 where there is none."""
    if not point_form(db, model)[0]:
        return 0
    return int(db.value(f"SELECT max(id) FROM {point_table(model, side)}") or 0)


def missing_points(db: Connection, model: int, side: PointKind) -> IntArray:
    """Return the contents of items, or of captions for side ``text``, that have no point, by id."""
    return np.unique(db.ids(f"SELECT content FROM {_owners_without_point(db, model, side)}"))


def count_missing_points(db: Connection, model: int, side: PointKind) -> int:
    """Return how many items with a picture, or captions for side ``text``, have no point."""
    return int(db.value(f"SELECT count(*) FROM {_owners_without_point(db, model, side)}"))


def _owners_without_point(db: Connection, model: int, side: PointKind) -> str:
    owners = "caption" if side == "text" else "item"
    lacks = f"NOT EXISTS (SELECT 1 FROM {point_table(model, side)} p WHERE p.content = {owners}.content)"
    if not point_form(db, model)[0]:
        # The tables are made with the first points.
        lacks = "1 = 1"
    return f"{owners} WHERE content IS NOT NULL AND {lacks}"


def encoder_id(db: Connection, fingerprint: str, side: Side, width: int) -> int:
    """Return the id of an encoder of one side; one that is not known yet is noted."""
    db.run(
        "INSERT INTO encoder (fingerprint, side, width) VALUES (?, ?, ?) ON CONFLICT (fingerprint, side) DO NOTHING",
        (fingerprint, side, width),
    )
    return int(known_encoder(db, fingerprint, side) or 0)


def known_encoder(db: Connection, fingerprint: str, side: Side) -> int | None:
    """Return the id of an encoder that has stored features, None where there is none."""
    found: int | None = db.value("SELECT id FROM encoder WHERE fingerprint = ? AND side = ?", (fingerprint, side))
    return found


def put_features(db: Connection, encoder: int, contents: Sequence[int] | IntArray, rows: AnyArray) -> None:
    """Store features as float32; those that these contents had before are replaced."""
    ids = np.asarray(contents, dtype=np.int64)
    for some in _pieces(ids):
        condition, values = db.among("content", some)
        db.run(f"DELETE FROM feature WHERE encoder = ? AND {condition}", (encoder, *values))
    encoders = np.full(len(ids), encoder, dtype=np.int64)
    _insert(db, "feature", ("content", "encoder"), (ids, encoders), np.ascontiguousarray(rows, dtype=np.float32))


def read_features(db: Connection, encoder: int, contents: Sequence[int] | IntArray) -> tuple[IntArray, AnyArray]:
    """Return (contents, features) of some contents, by content; those without features are left out."""
    width = int(db.value("SELECT width FROM encoder WHERE id = ?", (encoder,)) or 0)
    found: list[tuple[Any, ...]] = []
    for ids in _pieces(np.unique(np.asarray(contents, dtype=np.int64))):
        condition, values = db.among("content", ids)
        sql = f"SELECT content, v FROM feature WHERE encoder = ? AND {condition} ORDER BY content"
        found += db.rows(sql, (encoder, *values))
    rows = np.frombuffer(b"".join(row for _, row in found), dtype=np.float32).reshape(len(found), width)
    return np.array([content for content, _ in found], dtype=np.int64), rows


def prune_contents(db: Connection, some: Sequence[int] | IntArray) -> int:
    """Remove those of some contents that no item has, with points, features, thumbnails and texts; return how many."""
    condition, values = db.among("id", some)
    ids = db.ids(
        f"SELECT id FROM content WHERE {condition} "
        "AND NOT EXISTS (SELECT 1 FROM item WHERE item.content = content.id) "
        "AND NOT EXISTS (SELECT 1 FROM caption WHERE caption.content = content.id)",
        values,
    )
    if not len(ids):
        return 0
    for (model,) in db.rows("SELECT id FROM model WHERE width > 0"):
        for side in POINT_KINDS:
            remove_points(db, int(model), side, ids)
    condition, values = db.among("id", ids)
    return db.run(f"DELETE FROM content WHERE {condition}", values)


def _pieces(ids: Sequence[int] | IntArray) -> Iterator[IntArray]:
    array = np.asarray(ids, dtype=np.int64)
    for start in range(0, len(array), IDS_AT_ONCE):
        yield array[start : start + IDS_AT_ONCE]


def _insert(
    db: Connection, table: str, names: tuple[str, str], keys: tuple[IntArray, IntArray], vectors: AnyArray
) -> None:
    """Insert vectors, each with its content, its part or encoder, and the checksum of all three."""
    rows = zip(*(key.tolist() for key in keys), vectors, strict=True)
    codes = np.array([point_crc(content, other, row.tobytes()) for content, other, row in rows], dtype=np.int64)
    db.load_arrays(table, (*names, "v", "crc"), (*keys, vectors, codes))


def _read(db: Connection, model: int, side: PointKind, condition: str, values: Sequence[Any] = ()) -> PointBlock:
    """Return the points that meet a condition."""
    width, dtype = point_form(db, model)
    if not width:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing, np.zeros((0, 0), dtype=dtype)
    # The server sends a vector as its length and its numbers, the first byte of each first.
    vector = "v" if db.engine == "sqlite" else "bit_send(v)" if dtype == np.uint8 else "halfvec_send(v)"
    head, wire = (0, np.dtype(dtype)) if db.engine == "sqlite" else (4, np.dtype(dtype).newbyteorder(">"))
    rows = db.rows(f"SELECT id, content, part, {vector} FROM {point_table(model, side)} WHERE {condition}", values)
    columns = list(zip(*rows, strict=True)) or [()] * 4
    numbers, owners, parts = (np.array(column, dtype=np.int64) for column in columns[:3])
    body = b"".join(row[head:] for row in columns[3])
    return numbers, owners, parts, np.frombuffer(body, dtype=wire).reshape(len(rows), width).astype(dtype, copy=False)
