"""Points that were made elsewhere: from columns of Arrow or NumPy to stored items, many rows to a write."""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray
from diptych.arrow import arrow_package
from diptych.collection.indexing.encoding import Encoded, Source, put_encoded
from diptych.collection.indexing.records import text_hash
from diptych.collection.item import (
    LONGEST_CAPTION,
    LONGEST_LABEL,
    LONGEST_METADATA,
    Item,
    is_storable,
    metadata_fault,
)
from diptych.collection.retriever_protocol import Side
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.history import forget_past
from diptych.collection.store.items import (
    PICTURE,
    TEXT,
    content_ids,
    items_by_name,
    items_by_path,
    next_time,
    put_items,
)
from diptych.collection.store.models import followed_models
from diptych.collection.store.points import point_table
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store
from diptych.errors import InvalidInputError
from diptych.space import Direction

COLUMNS = ("id", "caption", "labels", "metadata", "path", "content_hash", "text_point", "image_point")
ROWS_AT_ONCE = 2000
_DIGEST_LENGTH = 64
DIRECTIONS: Mapping[Side, Direction] = {"text": "image_query", "image": "text_query"}
_POINTS: Mapping[Side, tuple[str, str]] = {"text": ("caption", "text_point"), "image": ("content_hash", "image_point")}


class _Row(NamedTuple):
    item: Item
    text_point: AnyArray | None
    image_point: AnyArray | None


def load_points(
    store: Store, root: Root, sources: Sequence[Source], batches: Any, progress: Callable[[int], None] | None = None
) -> int:
    """Store all rows of tables, record batches, mappings of columns or a Parquet file; return how many there are.

    A group of rows is checked as a whole before anything of it is written; those before it are stored.
    """
    if len(sources) > 1:
        names = ", ".join(repr(model.name) for model, _ in sources[1:])
        raise InvalidInputError(
            f"the points of further retrievers would be lacking: {names}; remove these, load, and add them again"
        )
    sample = np.asarray(sources[0][1].encode_texts(["a"]))
    operation, n_stored = uuid.uuid4().hex, 0
    groups = _groups(batches, root, sample.shape[1], np.uint8 if sample.dtype == np.uint8 else np.float32)
    while True:
        try:
            group = next(groups, None)
            if group is None:
                return n_stored
            n_stored += store.write(partial(_put_group, sources=sources, rows=group, operation=operation))
        except InvalidInputError as problem:
            raise InvalidInputError(f"{problem} (the {n_stored:,} items before are stored)") from None
        if progress is not None:
            progress(n_stored)


def _put_group(db: Connection, sources: Sequence[Source], rows: Sequence[_Row], operation: str) -> int:
    if {model.id for model in followed_models(db)} != {sources[0][0].id}:
        raise InvalidInputError("another process has changed the models of this collection; load again")
    items = [row.item for row in rows]
    for name, known in (
        ("id", items_by_name(db, [item.id for item in items])),
        ("path", items_by_path(db, [item.path for item in items if item.path is not None])),
    ):
        taken = set(known)
        for item in items:
            value = item.id if name == "id" else item.path
            if value in taken:
                raise InvalidInputError(f"item {item.id!r} shares its {name} with another item; name each once")
            taken |= {value} if value is not None else set()
    texts = [(text_hash(row.item.captions[0]), row.text_point) for row in rows if row.text_point is not None]
    pictures = [(str(row.item.content_hash), row.image_point) for row in rows if row.image_point is not None]
    _put_points(db, sources[0], "text", TEXT, texts)
    _put_points(db, sources[0], "image", PICTURE, pictures)
    put_items(db, items, operation=operation, now_ns=next_time(db))
    forget_past(db)
    return len(items)


def _put_points(db: Connection, source: Source, side: Side, kind: int, points: Sequence[tuple[str, AnyArray]]) -> None:
    """Store points by content; of equal contents, and of one that has a point already, the first is kept."""
    model, retriever = source
    first = dict(reversed(points))
    ids = content_ids(db, list(first), kind)
    there: set[int] = set()
    # The tables of a model are made with its first points.
    if db.value("SELECT width FROM model WHERE id = ?", (model.id,)):
        condition, values = db.among("content", list(ids.values()))
        there.update(db.ids(f"SELECT content FROM {point_table(model.id, side)} WHERE {condition}", values).tolist())
    keys = [key for key in dict.fromkeys(key for key, _ in points) if ids[key] not in there]
    if keys:
        stored = Scoring(retriever.space, DIRECTIONS[side]).stored(np.stack([first[key] for key in keys]))
        made: AnyArray = stored if stored.dtype == np.uint8 else stored.astype(np.float16)
        put_encoded(db, Encoded(points={(model.id, side): (keys, made)}), [source], ids)


def _groups(batches: Any, root: Root, width: int, kind: type[np.generic]) -> Iterator[list[_Row]]:
    """Yield checked rows, many at once, all with the same columns."""
    held: list[_Row] = []
    columns_before: set[str] = set()
    for columns in _column_batches(batches):
        if held and set(columns) != columns_before:
            yield held
            held = []
        columns_before = set(columns)
        for row in _rows(columns, root, width, kind):
            held.append(row)
            if len(held) == ROWS_AT_ONCE:
                yield held
                held = []
    if held:
        yield held


def _column_batches(batches: Any) -> Iterator[dict[str, Any]]:
    """Yield the columns of each batch by name: lists, and arrays of points with None where there are none."""
    if isinstance(batches, (str, os.PathLike)):
        batches = arrow_package("reading Parquet files").parquet.ParquetFile(Path(batches)).iter_batches(ROWS_AT_ONCE)
    is_one = isinstance(batches, Mapping) or hasattr(batches, "column_names")
    for batch in [batches] if is_one else batches:
        if isinstance(batch, Mapping):
            yield dict(batch)
        elif hasattr(batch, "column_names"):
            yield {name: _arrow_column(name, batch[name]) for name in batch.column_names}
        else:
            raise InvalidInputError(
                f"load takes mappings of columns, tables and record batches of Arrow, got {type(batch).__name__}"
            )


def _arrow_column(name: str, column: Any) -> Any:
    pa = arrow_package("reading Arrow tables")
    if not name.endswith("_point"):
        if name in ("id", "caption", "path", "content_hash") and not (
            pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_null(column.type)
        ):
            raise InvalidInputError(
                f"the column {name} must be string of valid values, got {column.type}; convert it first"
            )
        return column.to_pylist()
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    parts = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    points: list[Any] = []
    for part in parts:
        valid = part.is_valid().to_numpy(zero_copy_only=False)
        numbers = part.drop_null().flatten().to_numpy(zero_copy_only=False)
        rows = iter(numbers.reshape(int(valid.sum()), -1) if valid.any() else ())
        points += [next(rows) if is_valid else None for is_valid in valid]
    return points


def _rows(columns: Mapping[str, Any], root: Root, width: int, kind: type[np.generic]) -> Iterator[_Row]:
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown or "id" not in columns:
        what = f"of {unknown[0]!r}" if unknown else "without ids"
        raise InvalidInputError(f"a table {what} cannot be loaded; the columns are {', '.join(COLUMNS)}")
    count = len(columns["id"])
    for name, column in columns.items():
        if isinstance(column, str) or len(column) != count:
            raise InvalidInputError(f"the column {name} must have {count:,} values, one for each id")
    empty = [None] * count
    for values in zip(*(columns.get(name, empty) for name in COLUMNS), strict=True):
        row = dict(zip(COLUMNS, values, strict=True))
        item = _item(row, root)
        points: dict[Side, AnyArray | None] = {}
        for side, (of, name) in _POINTS.items():
            if row[of] is not None and name not in columns:
                raise _refused(item.id, f"has a {of} and no {name}; add the column {name}")
            if (row[of] is None) != (row[name] is None):
                raise _refused(item.id, f"has only one of {of} and {name}; give both or none")
            points[side] = None if row[name] is None else _point(item.id, name, row[name], width, kind)
        yield _Row(item, points["text"], points["image"])


def _point(item_id: str, name: str, given: Any, width: int, kind: type[np.generic]) -> AnyArray:
    try:
        point = np.asarray([math.nan if one is None else one for one in given] if isinstance(given, list) else given)
        if point.shape != (width,):
            raise ValueError(f"{point.shape} numbers")
        if not np.isfinite(point.astype(np.float64)).all():
            raise _refused(item_id, f"has numbers that are not finite in {name}; leave the item out")
        return point.astype(kind)
    except (TypeError, ValueError) as problem:
        if isinstance(problem, InvalidInputError):
            raise
        raise InvalidInputError(f"the column {name} must have {width} numbers in each row ({problem})") from None


def _item(row: Mapping[str, Any], root: Root) -> Item:
    name, caption, path, content = (row[column] for column in ("id", "caption", "path", "content_hash"))
    for column in ("id", "caption", "path", "content_hash"):
        value = row[column]
        if value is not None and not (isinstance(value, str) and is_storable(value)):
            raise InvalidInputError(f"the column {column} must be string of valid values, got {value!r:.80}")
    if not name:
        raise InvalidInputError("an item has no id; give each row of the column id a string that is not empty")
    if caption is not None and not caption.strip():
        raise _refused(name, "has an empty caption; use null where there is none")
    for column, text, longest in (("id", name, LONGEST_LABEL), ("caption", caption or "", LONGEST_CAPTION)):
        if len(text) > longest:
            raise _refused(name, f"has a {column} that is too long; cut it")
    if path is not None and not path.strip():
        raise _refused(name, "has an empty path; use null where there is none")
    if content is not None and (len(content) != _DIGEST_LENGTH or not set(content) <= set("0123456789abcdef")):
        raise _refused(name, "has a content_hash that is no SHA-256 in 64 hexadecimal digits; hash its file")
    if (path is None) != (content is None):
        raise _refused(name, "has only one of path and content_hash; give both or none")
    if path is None and caption is None:
        raise _refused(name, "has no caption and no picture; give it one of them")
    if path is not None:
        root.check_trusted()
    labels = tuple(row["labels"] if row["labels"] is not None else ())
    if not all(isinstance(label, str) and label.strip() for label in labels):
        raise _refused(name, "has an empty label; leave it out")
    metadata = row["metadata"] if row["metadata"] is not None else "{}"
    if isinstance(metadata, Mapping):
        plain = {key: value for key, value in metadata.items() if value is not None}
        try:
            metadata = json.dumps(plain, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as problem:
            raise InvalidInputError(f"metadata must be JSON values ({problem}); convert them first") from None
    fields = _metadata(metadata)
    if fields is None:
        raise _refused(
            name,
            "has metadata that are no JSON object of finite numbers and valid Unicode, or too large or deep; "
            "make it with json.dumps",
        )
    captions = () if caption is None else (caption,)
    return Item(
        *(name, None if path is None else root.stored(path), content),
        labels=labels,
        metadata=fields,
        captions=captions,
        caption_ids=tuple(f"{name}-{os.urandom(4).hex()}" for _ in captions),
    )


def _refused(item_id: str, reason: str) -> InvalidInputError:
    return InvalidInputError(f"item {item_id!r} {reason}")


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number} is no finite number")
    return value


_decode = json.JSONDecoder(parse_constant=_finite, parse_float=_finite).decode


@lru_cache(maxsize=ROWS_AT_ONCE)
def _metadata(text: str) -> dict[str, Any] | None:
    """Return the object of a JSON text, None where it cannot be stored."""
    try:
        fields = _decode(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return None if len(text) > LONGEST_METADATA or metadata_fault(fields, len(text)) else fields
