"""Points that were made elsewhere: from columns of Arrow or NumPy to stored items, many rows to a write."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import chain
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
    is_plain,
    is_storable,
    metadata_fault,
)
from diptych.collection.retriever_protocol import RetrieverProtocol, Side
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_path
from diptych.collection.store.models import followed_models
from diptych.collection.store.points import point_table
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store
from diptych.collection.store.writing import PICTURE, TEXT, content_ids, put_items
from diptych.errors import InvalidInputError
from diptych.space import Direction

COLUMNS = ("id", "caption", "labels", "metadata", "path", "content_hash", "text_point", "image_point")
ROWS_AT_ONCE = 20_000
_SHA256 = re.compile("[0-9a-f]{64}")
DIRECTIONS: Mapping[Side, Direction] = {"text": "image_query", "image": "text_query"}
_CONTENTS: Mapping[Side, int] = {"text": TEXT, "image": PICTURE}
_POINTS: Mapping[Side, tuple[str, str]] = {"text": ("caption", "text_point"), "image": ("content_hash", "image_point")}


class _Group(NamedTuple):
    """Items that are stored together, and their points: for each side, hashes of contents with a stored row each."""

    items: list[Item]
    points: Mapping[Side, tuple[list[str], AnyArray]]


def load_points(
    store: Store, root: Root, sources: Sequence[Source], batches: Any, progress: Callable[[int], None] | None = None
) -> int:
    """Store all rows of tables, record batches, mappings of columns or a Parquet file; return how many there are.

    A group of rows is checked as a whole before anything of it is written, while the one before is written; those
    before it are stored.
    """
    if len(sources) > 1:
        names = ", ".join(repr(model.name) for model, _ in sources[1:])
        raise InvalidInputError(
            f"the points of further retrievers would be lacking: {names}; remove these, load, and add them again"
        )
    # Servers end statements that take long.
    at_once = ROWS_AT_ONCE if store.engine == "sqlite" else max(1, ROWS_AT_ONCE // 8)
    n_stored = 0
    written: Future[int] | None = None
    with ThreadPoolExecutor(1) as writer:
        for group in chain(_or_problem(_groups(batches, root, sources[0][1], at_once)), [None]):
            try:
                if written is not None:
                    n_stored += written.result()
                    if progress is not None:
                        progress(n_stored)
                if isinstance(group, InvalidInputError):
                    raise group
            except InvalidInputError as problem:
                raise InvalidInputError(f"{problem} (the {n_stored:,} items before are stored)") from None
            if group is not None:
                job = partial(_put_group, source=sources[0], group=group)
                written = writer.submit(store.write, job, wait=store.patience)
    return n_stored


def _or_problem(groups: Iterator[_Group]) -> Iterator[_Group | InvalidInputError]:
    try:
        yield from groups
    except InvalidInputError as problem:
        yield problem


def _put_group(db: Connection, source: Source, group: _Group) -> int:
    if {model.id for model in followed_models(db)} != {source[0].id}:
        raise InvalidInputError("another process has changed the models of this collection; load again")
    for path, (_, item) in items_by_path(db, (item.path for item in group.items if item.path is not None)).items():
        sharing = next(one for one in group.items if one.path == path)
        if sharing.id != item.id:
            raise _refused(sharing.id, "shares its path with another item; name each once")
    ids: dict[str, int] = {}
    for side, points in group.points.items():
        ids |= content_ids(db, points[0], _CONTENTS[side])
        _put_points(db, source, side, ids, points)
    put_items(db, group.items, contents=ids, replaces=False)
    return len(group.items)


def _put_points(
    db: Connection, source: Source, side: Side, ids: Mapping[str, int], points: tuple[list[str], AnyArray]
) -> None:
    """Store points by content; one that has a point already keeps it."""
    keys, rows = points
    # The tables of a model are made with its first points.
    if keys and db.value("SELECT width FROM model WHERE id = ?", (source[0].id,)):
        condition, values = db.among("content", [ids[key] for key in keys])
        there = set(db.ids(f"SELECT content FROM {point_table(source[0].id, side)} WHERE {condition}", values).tolist())
        if there:
            fresh = [place for place, key in enumerate(keys) if ids[key] not in there]
            keys, rows = [keys[place] for place in fresh], rows[fresh]
    put_encoded(db, Encoded(points={(source[0].id, side): dict(zip(keys, rows, strict=True))}), [source], ids)


def _groups(batches: Any, root: Root, retriever: RetrieverProtocol, at_once: int) -> Iterator[_Group]:
    """Yield checked rows, many at once, all with the same columns."""
    sample = np.asarray(retriever.encode_texts(["a"]))
    width, kind = sample.shape[1], np.uint8 if sample.dtype == np.uint8 else np.float32

    held: dict[str, list[Any]] = {}
    for columns in _column_batches(batches):
        _check_columns(columns)
        if held and set(columns) != set(held):
            yield _group(held, root, retriever, width, kind)
            held = {}
        for start in range(0, len(columns["id"]), at_once):
            for name, column in columns.items():
                held.setdefault(name, []).extend(column[start : start + at_once])
            if len(held["id"]) >= at_once:
                yield _group({name: column[:at_once] for name, column in held.items()}, root, retriever, width, kind)
                held = {name: column[at_once:] for name, column in held.items()}
    if held and held["id"]:
        yield _group(held, root, retriever, width, kind)


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


def _check_columns(columns: Mapping[str, Any]) -> None:
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown or "id" not in columns:
        what = f"of {unknown[0]!r}" if unknown else "without ids"
        raise InvalidInputError(f"a table {what} cannot be loaded; the columns are {', '.join(COLUMNS)}")
    for name, column in columns.items():
        if isinstance(column, str) or len(column) != len(columns["id"]):
            raise InvalidInputError(f"the column {name} must have {len(columns['id']):,} values, one for each id")


def _group(
    columns: Mapping[str, list[Any]], root: Root, retriever: RetrieverProtocol, width: int, kind: type[np.generic]
) -> _Group:
    items = _items(columns, root)
    points: dict[Side, tuple[list[str], AnyArray]] = {}
    for side, (of, name) in _POINTS.items():
        contents: list[Any] = columns.get(of, [None] * len(items))
        given: list[Any] = columns.get(name, [None] * len(items))
        for item, content, point in zip(items, contents, given, strict=True):
            if content is not None and name not in columns:
                raise _refused(item.id, f"has a {of} and no {name}; add the column {name}")
            if (content is None) != (point is None):
                raise _refused(item.id, f"has only one of {of} and {name}; give both or none")
        there = [place for place, content in enumerate(contents) if content is not None]
        rows = _points(name, [given[place] for place in there], [items[place].id for place in there], width, kind)
        hashes = [text_hash(contents[place]) if side == "text" else contents[place] for place in there]
        # Of equal contents the first is kept.
        first = dict(zip(reversed(hashes), reversed(range(len(hashes))), strict=True))
        keys = list(dict.fromkeys(hashes))
        chosen = rows if len(keys) == len(hashes) else rows[[first[key] for key in keys]]
        points[side] = keys, Scoring(retriever.space, DIRECTIONS[side]).stored(chosen) if keys else chosen
    return _Group(items, points)


def _points(name: str, given: Sequence[Any], ids: Sequence[str], width: int, kind: type[np.generic]) -> AnyArray:
    """Return the points of a column, which must be finite."""
    try:
        rows = np.array(given, dtype=np.float32).reshape(len(given), -1 if given else width)
        if rows.shape[1] != width:
            raise ValueError(f"{rows.shape[1]} numbers")
    except (TypeError, ValueError) as problem:
        raise InvalidInputError(f"the column {name} must have {width} numbers in each row ({problem})") from None
    is_finite = np.isfinite(rows).all(axis=1)
    if not is_finite.all():
        raise _refused(ids[int(is_finite.argmin())], f"has numbers that are not finite in {name}; leave the item out")
    return rows.astype(kind, copy=False)


def _items(columns: Mapping[str, list[Any]], root: Root) -> list[Item]:
    empty, noise = [None] * len(columns["id"]), os.urandom(4 * len(columns["id"])).hex()
    for name in ("id", "caption", "path", "content_hash"):
        for value in columns.get(name, ()):
            if value is not None and not (isinstance(value, str) and is_storable(value)):
                raise InvalidInputError(f"the column {name} must be string of valid values, got {value!r:.80}")
    names, paths = set[str](), set[str]()
    items = []
    listed = zip(*(columns.get(name, empty) for name in COLUMNS[:6]), strict=True)
    for row, (name, caption, labels, metadata, path, content) in enumerate(listed):
        _check_row(name, caption, path, content)
        stored = None if path is None else root.stored(path)
        if name in names or stored in paths:
            of = "id" if name in names else "path"
            raise _refused(name, f"shares its {of} with another item; name each once")
        names.add(name)
        if stored is not None:
            paths.add(stored)
        labels = tuple(labels or ())
        if not all(isinstance(label, str) and label.strip() for label in labels):
            raise _refused(name, "has an empty label; leave it out")
        captions = () if caption is None else (caption,)
        caption_ids = () if caption is None else (f"{name}-{noise[8 * row : 8 * row + 8]}",)
        fields = {} if metadata is None else _fields(name, metadata)
        items.append(
            Item(name, stored, content, labels=labels, metadata=fields, caption_ids=caption_ids, captions=captions)
        )
    if paths:
        root.check_trusted()
    return items


def _check_row(name: str | None, caption: str | None, path: str | None, content: str | None) -> None:
    if not name:
        raise InvalidInputError("an item has no id; give each row of the column id a string that is not empty")
    if caption is not None and not caption.strip():
        raise _refused(name, "has an empty caption; use null where there is none")
    if len(name) > LONGEST_LABEL or (caption is not None and len(caption) > LONGEST_CAPTION):
        raise _refused(name, f"has {'an id' if len(name) > LONGEST_LABEL else 'a caption'} that is too long; cut it")
    if path is not None and not path.strip():
        raise _refused(name, "has an empty path; use null where there is none")
    if content is not None and not _SHA256.fullmatch(content):
        raise _refused(name, "has a content_hash that is no SHA-256 in 64 hexadecimal digits; hash its file")
    if (path is None) != (content is None):
        raise _refused(name, "has only one of path and content_hash; give both or none")
    if path is None and caption is None:
        raise _refused(name, "has no caption and no picture; give it one of them")


def _fields(name: str, metadata: Any) -> Mapping[str, Any]:
    """Return the metadata of a row, which are a mapping or the text of one."""
    if isinstance(metadata, dict):
        plain = {key: value for key, value in metadata.items() if value is not None}
        if is_plain(plain):
            return plain
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
    return fields


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
