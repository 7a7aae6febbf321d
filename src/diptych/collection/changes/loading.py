"""Points that were made elsewhere, by columns: from Arrow tables to stored items, without an object per item."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, BoolArray
from diptych.collection.browse.live_items import text_hashes
from diptych.collection.changes.encoding import KnownKeys
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage.item import LONGEST_CAPTION, LONGEST_LABEL, LONGEST_METADATA, metadata_fault
from diptych.collection.storage.layout import search_package
from diptych.collection.storage.retriever_protocol import Side
from diptych.collection.storage.rows import table_schema
from diptych.collection.storage.store import points_table
from diptych.errors import InvalidInputError

COLUMNS = ("id", "caption", "labels", "metadata", "path", "content_hash", "text_point", "image_point")
# Metadata that need a closer look: depth, huge numbers, no names, NaN, surrogates, null characters.
_UNUSUAL = r'(?:[\[{][^\[{]*){17}|\d{19}|[eE]\+?\d\d|""\s*:|NaN|Infinity|\\u[dD][89a-fA-F]|\\u0000'
# Each group is a commit of every table and a file in it: 64 MB of points with 256 numbers.
_ROWS_AT_ONCE = 1 << 16
# Room between two items for the order of their captions.
_TICK_NS = 1000


class Loading:
    """Brings columns into the store, a group of rows at a time: points, captions, and then the items in one commit.

    A group is checked as a whole before anything of it is written.
    """

    def __init__(self, state: LiveState) -> None:
        self._state = state
        self._known = KnownKeys(state.store)
        self._names = state.layout.retriever
        items = state.items()
        self._taken = {name: items.column(name).chunks for name in ("id", "path")}
        self._clock = state.next_ns()

    def load(self, batches: Any, progress: Callable[[int], None] | None) -> int:
        """Store all rows and return how many there are."""
        further = self._state.layout.followed[1:]
        if further:
            names = ", ".join(repr(names.name) for names in further)
            raise InvalidInputError(
                f"the points of further retrievers would be lacking: {names}; remove these, load, and add them again"
            )
        n_stored = self._load(batches, progress)
        if n_stored:
            self._state.tidy(n_stored)
        return n_stored

    def _load(self, batches: Any, progress: Callable[[int], None] | None) -> int:
        """Store the rows; while the engine writes a group, the next one is checked."""
        sample = np.asarray(self._state.retriever().encode_texts(["a"]))

        def written(group: Future[int]) -> int:
            n_stored = group.result()
            if n_stored and progress is not None:
                progress(n_stored)
            return n_stored

        with ThreadPoolExecutor(1) as writer:
            before = writer.submit(int)
            for table in _groups(batches):
                try:
                    rows = self._checked(table, sample)
                except InvalidInputError as problem:
                    raise InvalidInputError(f"{problem} (the {written(before):,} items before are stored)") from None
                captions, items = self._tables(rows)
                n_before = written(before)
                before = writer.submit(self._store, rows, captions, items, n_before)
            return written(before)

    def _checked(self, table: Any, sample: AnyArray) -> _Rows:
        rows = _Rows(table, sample.shape[1], sample.dtype, os.path.join(self._state.root.folder, ""))
        if rows.paths.null_count < len(rows.paths):
            self._state.root.check_trusted()
        for name, column in (("id", rows.ids), ("path", rows.paths)):
            rows.refuse(_is_taken(column, self._taken[name]), f"shares its {name} with another item; name each once")
            self._taken[name].append(column)
        return rows

    def _tables(self, rows: _Rows) -> tuple[Any, Any]:
        """Return the rows of captions and of items."""
        pa = search_package("pyarrow")
        has_caption = rows.captions.is_valid()
        item_ids = rows.ids.filter(has_caption)
        caption_ids = _caption_ids(item_ids)
        captions = {"id": caption_ids, "item_id": item_ids, "text": rows.captions.drop_null()}
        starts = np.concatenate([[0], np.cumsum(has_caption.to_numpy(zero_copy_only=False))]).astype(np.int32)
        # Times only grow: readers find what has changed by them.
        times = max(time.time_ns(), self._clock) + _TICK_NS * np.arange(len(rows), dtype=np.int64)
        self._clock = int(times[-1]) + _TICK_NS
        items = {"id": rows.ids, "path": rows.paths, "content_hash": rows.contents}
        items |= {name: np.zeros(len(rows), dtype=np.int64) for name in ("size", "mtime_ns")}
        items |= {name: np.zeros(len(rows), dtype=np.int32) for name in ("width", "height")}
        items |= {"labels": rows.labels, "metadata": rows.metadata}
        items |= dict.fromkeys(("facts", "facts_read"), pa.nulls(len(rows), pa.string()))
        items |= {"caption_ids": pa.ListArray.from_arrays(starts, caption_ids), "added_ns": times, "updated_ns": times}
        return pa.table(captions, schema=table_schema("captions")), pa.table(items, schema=table_schema("items"))

    def _store(self, rows: _Rows, captions: Any, items: Any, n_before: int) -> int:
        """Write a group, and return how many items are stored then."""
        self._add_points("image", rows.contents.drop_null().to_pylist(), rows.points["image"])
        self._add_points("text", text_hashes(captions["text"]), rows.points["text"])
        self._state.store.add_rows("captions", captions)
        self._state.store.add_rows("items", items)
        return n_before + len(rows)

    def _add_points(self, side: Side, keys: list[str], points: Any) -> None:
        """Store points by content; of equal contents, and of one that is stored already, the first is kept."""
        table = points_table(self._names, side)
        there = self._known.among(table, keys)
        if there or len({*keys}) < len(keys):
            places = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
            kept = sorted(place for key, place in places.items() if key not in there)
            keys, points = [keys[place] for place in kept], points.take(search_package("pyarrow").array(kept, "int64"))
        self._known.add_vectors(table, keys, points)


class _Rows:
    """The columns of a group in the types of the store; every value has been checked, names only against themselves."""

    def __init__(self, table: Any, width: int, kind: np.dtype[Any], root: str) -> None:
        pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
        unknown = [name for name in table.column_names if name not in COLUMNS]
        if unknown or "id" not in table.column_names:
            what = f"of {unknown[0]!r}" if unknown else "without ids"
            raise InvalidInputError(f"a table {what} cannot be loaded; the columns are {', '.join(COLUMNS)}")
        self._table = table
        self.ids = self._column("id", pa.string())
        if self.ids.null_count or pc.any(pc.equal(self.ids, "")).as_py():
            raise InvalidInputError("an item has no id; give each row of the column id a string that is not empty")
        self.captions, paths = self._column("caption", pa.string()), self._column("path", pa.string())
        self.contents = self._column("content_hash", pa.string())
        self.refuse(_is_blank(self.captions), "has an empty caption; use null where there is none")
        for kind_of, texts, longest in (("id", self.ids, LONGEST_LABEL), ("caption", self.captions, LONGEST_CAPTION)):
            self.refuse(_mask(pc.greater(pc.utf8_length(texts), longest)), f"has a {kind_of} that is too long; cut it")
        self.refuse(_is_blank(paths), "has an empty path; use null where there is none")
        is_digest = pc.match_substring_regex(self.contents, "^[0-9a-f]{64}$")
        self.refuse(
            ~_mask(is_digest, True), "has a content_hash that is no SHA-256 in 64 hexadecimal digits; hash its file"
        )
        self.refuse(_valid(paths) != _valid(self.contents), "has only one of path and content_hash; give both or none")
        self.refuse(~(_valid(paths) | _valid(self.captions)), "has no caption and no picture; give it one of them")
        is_inside = pc.starts_with(paths, root)
        self.paths = pc.if_else(is_inside, pc.utf8_slice_codeunits(paths, start=len(root)), paths)
        self.points = {
            "text": self._points("text_point", "caption", self.captions, width, kind),
            "image": self._points("image_point", "content_hash", self.contents, width, kind),
        }
        self.labels = self._labels()
        wrong = np.zeros(len(self), dtype=bool)
        each = self.labels.flatten()
        wrong[pc.list_parent_indices(self.labels).filter(pa.array(_is_blank(each) | ~_valid(each))).to_numpy()] = True
        self.refuse(wrong, "has an empty label; leave it out")
        self.metadata = self._metadata()

    def __len__(self) -> int:
        return len(self.ids)

    def refuse(self, is_wrong: BoolArray, reason: str) -> None:
        """Raise where a row is wrong, and name the first."""
        if is_wrong.any():
            raise InvalidInputError(f"item {self.ids[int(is_wrong.argmax())].as_py()!r} {reason}")

    def _column(self, name: str, kind: Any) -> Any:
        pa = search_package("pyarrow")
        if name not in self._table.column_names:
            return pa.nulls(len(self._table), kind)
        return _cast(name, self._table[name].combine_chunks(), kind)

    def _points(self, name: str, of: str, contents: Any, width: int, kind: np.dtype[Any]) -> Any:
        """Return the points of the rows that have something to point at, as they came: copies would be large."""
        pa = search_package("pyarrow")
        is_wanted, form = _valid(contents), pa.list_(pa.uint8() if kind == np.uint8 else pa.float32(), width)
        if name not in self._table.column_names:
            self.refuse(is_wanted, f"has a {of} and no {name}; add the column {name}")
            return pa.chunked_array([], form)
        column = _cast(name, self._table[name], form)
        self.refuse(_valid(column) != is_wanted, f"has only one of {of} and {name}; give both or none")
        points = column.drop_null() if column.null_count else column
        blocks = (chunk.flatten().to_numpy(zero_copy_only=False).reshape(-1, width) for chunk in points.chunks)
        is_wrong = np.zeros(len(self), dtype=bool)
        is_wrong[is_wanted] = np.concatenate([is_wrong[:0], *(~np.isfinite(block).all(axis=1) for block in blocks)])
        self.refuse(is_wrong, f"has numbers that are not finite in {name}; leave the item out")
        return points

    def _labels(self) -> Any:
        pa, kind = search_package("pyarrow"), search_package("pyarrow").list_(search_package("pyarrow").string())
        if "labels" not in self._table.column_names:
            return pa.ListArray.from_arrays(np.zeros(len(self) + 1, dtype=np.int32), pa.array([], pa.string()))
        return search_package("pyarrow.compute").fill_null(self._column("labels", kind), [])

    def _metadata(self) -> Any:
        """Return the texts of JSON objects; equal ones are looked at once."""
        pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
        given = self._table["metadata"].combine_chunks() if "metadata" in self._table.column_names else None
        if given is not None and pa.types.is_struct(given.type):
            rows = [
                {name: value for name, value in (row or {}).items() if value is not None} for row in given.to_pylist()
            ]
            try:
                return pa.array([json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows], pa.string())
            except (TypeError, ValueError) as problem:
                raise InvalidInputError(f"metadata must be JSON values ({problem}); convert them first") from None
        texts = pc.fill_null(self._column("metadata", pa.string()), "{}")
        distinct = texts.unique()
        listed = distinct.to_pylist()
        is_long = pc.max(pc.utf8_length(distinct)).as_py() > LONGEST_METADATA
        is_usual = not pc.any(pc.match_substring_regex(distinct, _UNUSUAL)).as_py()
        if is_long or not is_usual or not _are_plain_objects(listed):
            wrong = [not _is_stored_metadata(text) for text in listed]
            reason = (
                "has metadata that are no JSON object of finite numbers and valid Unicode, or too large or deep; "
                "make it with json.dumps"
            )
            self.refuse(_mask(pc.is_in(texts, distinct.filter(pa.array(wrong, pa.bool_())))), reason)
        return texts


def _cast(name: str, given: Any, kind: Any) -> Any:
    pa = search_package("pyarrow")
    try:
        column = given.cast(kind)
        column.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise InvalidInputError(
            f"the column {name} must be {kind} of valid values, got {given.type}; convert it first"
        ) from None
    return column


def _groups(batches: Any) -> Iterator[Any]:
    """Yield the rows in tables of many."""
    pa = search_package("pyarrow")
    held: list[Any] = []
    for given in [batches] if isinstance(batches, (pa.Table, pa.RecordBatch)) else batches:
        if not isinstance(given, (pa.Table, pa.RecordBatch)):
            raise InvalidInputError(f"load takes tables and record batches of Arrow, got {type(given).__name__}")
        table = given if isinstance(given, pa.Table) else pa.Table.from_batches([given])
        for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            if held and (batch.schema != held[0].schema or sum(map(len, held)) + len(batch) > _ROWS_AT_ONCE):
                yield pa.Table.from_batches(held)
                held = []
            held += [batch] if len(batch) else []
    if held:
        yield pa.Table.from_batches(held)


def _is_taken(names: Any, taken: list[Any]) -> BoolArray:
    """Say which names are among those that are taken, or stand there a second time; null is no name."""
    pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
    there = pa.chunked_array(taken, pa.string())
    # Tables of the new names are small, those of all names may not be.
    found = there.filter(pc.is_in(there, names.drop_null()))
    is_again = np.ones(len(names), dtype=bool)
    is_again[np.unique(pc.fill_null(names.dictionary_encode().indices, -1).to_numpy(), return_index=True)[1]] = False
    return (is_again | _mask(pc.is_in(names, found))) & _valid(names)


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number} is no finite number")
    return value


_decode = json.JSONDecoder(parse_constant=_finite, parse_float=_finite).decode
_decode_usual = json.JSONDecoder(parse_constant=_finite).decode


def _are_plain_objects(texts: Sequence[str]) -> bool:
    """Return True if all texts are JSON objects, in one reading; an unknown mark keeps each within its bounds."""
    mark = os.urandom(16).hex()
    try:
        found = _decode_usual(f"""[{f',"{mark}",'.join(texts)}]""")
    except (ValueError, RecursionError):
        return False
    marks = [mark] * (len(texts) - 1)
    return found[1::2] == marks and {*map(type, found[::2])} <= {dict} and len(found) == len(texts) + len(marks)


def _is_stored_metadata(text: str) -> bool:
    try:
        return not metadata_fault(_decode(text), len(text))
    except (ValueError, RecursionError):
        return False


def _caption_ids(item_ids: Any) -> Any:
    """Return a new id for one caption of each item, of the form that other captions have."""
    pa = search_package("pyarrow")
    drawn = os.urandom(4 * len(item_ids)).hex().encode()
    ends = np.arange(0, 8 * len(item_ids) + 1, 8, dtype=np.int32)
    suffixes = pa.StringArray.from_buffers(len(item_ids), pa.py_buffer(ends), pa.py_buffer(drawn))
    return search_package("pyarrow.compute").binary_join_element_wise(item_ids, suffixes, "-")


def _valid(column: Any) -> BoolArray:
    return _mask(column.is_valid())


def _mask(column: Any, null: bool = False) -> BoolArray:
    filled = search_package("pyarrow.compute").fill_null(column, null)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=bool)


def _is_blank(texts: Any) -> BoolArray:
    pc = search_package("pyarrow.compute")
    return _mask(pc.equal(pc.utf8_trim_whitespace(texts), ""))
