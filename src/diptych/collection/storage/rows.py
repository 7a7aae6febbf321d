"""Rows of the tables: their columns, and the way from items to rows and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import search_package
from diptych.errors import CollectionError

_MANY_FRAGMENTS, _MOST_FRAGMENTS = 40, 400
# Joined, files of this size are read no faster, and joining reads and writes all of them.
_SMALL_BYTES = 2 << 20
_MANY_DELETED = 1000
_MANY_WRITTEN = 1000
_BYTES_AT_ONCE = 1 << 27


def table_schema(table: str) -> Any:
    """Return the columns of a fixed table: items decide what exists, captions count when their items name them."""
    pa = search_package("pyarrow")
    text = pa.string()
    if table == "captions":
        return pa.schema({"id": text, "item_id": text, "text": text})
    if table == "thumbnails":
        return pa.schema({"key": text, "jpeg": pa.binary()})
    if table == "picture_texts":
        # Eight numbers for each word: the corners of its box.
        return pa.schema({"key": text, "text": text, "words": pa.list_(text), "corners": pa.list_(pa.float32())})
    if table == "removed":
        return pa.schema({"added_ns": pa.int64(), "removed_ns": pa.int64()})
    file = {"path": text, "content_hash": text, "size": pa.int64(), "mtime_ns": pa.int64()}
    picture = {"width": pa.int32(), "height": pa.int32()}
    described = {"labels": pa.list_(text), "metadata": text, "caption_ids": pa.list_(text)}
    times = {"added_ns": pa.int64(), "updated_ns": pa.int64()}
    whole = {"id": text, **file, **picture, **described, **times, "facts": text, "facts_read": text}
    return pa.schema({**whole, "captions": pa.list_(text), "gone_ns": pa.int64()} if table == "past_items" else whole)


def items_table(items: Sequence[Item]) -> Any:
    """Return the rows of items, which name their captions."""
    schema = table_schema("items")
    columns = {name: [getattr(item, name) for item in items] for name in schema.names}
    for name in ("metadata", "facts"):
        columns[name] = [json.dumps(fields, ensure_ascii=False) for fields in columns[name]]
    return search_package("pyarrow").table(columns, schema=schema)


def item_of_row(row: dict[str, Any], captions: Sequence[str]) -> Item:
    """Return the item of a row of :func:`items_table`."""
    row["caption_ids"], row["labels"] = tuple(row["caption_ids"]), tuple(row["labels"])
    for name in ("metadata", "facts"):
        row[name] = _fields(row[name])
    row["facts_read"] = row["facts_read"] or ""
    return Item(**row, captions=tuple(captions))


@dataclass(frozen=True)
class WrittenItems:
    """The items that this process has written since a time, up to a version: its next look need not ask for them."""

    since_ns: int = -1
    version: int = -1
    items: tuple[Item, ...] = ()

    def are_all(self, since_ns: int, version: int) -> bool:
        """Return True if no other items have changed after a time, up to a version."""
        return version == self.version and since_ns >= self.since_ns

    def followed_by(self, items: Sequence[Item], rows: Any, before: int, after: int) -> WrittenItems:
        """Return these and further ones as they are stored, none where others have written between or they are many."""
        if (before, after) != (self.version, self.version + 1) or len(self.items) + len(items) > _MANY_WRITTEN:
            return WrittenItems()
        stored = (item_of_row(row, item.captions) for row, item in zip(rows.to_pylist(), items, strict=True))
        return WrittenItems(self.since_ns, after, (*self.items, *stored))


def _fields(stored: str | None) -> dict[str, Any]:
    # Most have none, and this is done for every answer.
    return {} if not stored or stored == "{}" else json.loads(stored)


def json_objects(stored: Any) -> list[dict[str, Any]]:
    """Return the objects of a column of JSON texts; empty ones where there are none."""
    pc = search_package("pyarrow.compute")
    texts = pc.if_else(pc.equal(filled := stored.fill_null(""), ""), "{}", filled).to_pylist()
    # One document is parsed faster than many.
    return list(json.loads(f"[{','.join(texts)}]"))


def item_rows(items: Sequence[Item]) -> Any:
    """Return items with the texts of their captions as one batch of rows."""
    rows, pa = items_table(items), search_package("pyarrow")
    texts = pa.array([item.captions for item in items], pa.list_(pa.string()))
    return pa.record_batch({**{name: rows[name].combine_chunks() for name in rows.schema.names}, "captions": texts})


def rows_with_captions(items: Any, texts: Any) -> list[Any]:
    """Return rows of :func:`items_table` as batches of :func:`item_rows`; the texts are those of all their captions."""
    pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
    counts = pc.list_value_length(items["caption_ids"]).to_numpy()
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    rows = items.select(table_schema("items").names)
    captions = pa.ListArray.from_arrays(ends, texts.combine_chunks())
    return list(rows.append_column("captions", captions).combine_chunks().to_batches())


def items_of_rows(rows: Iterable[dict[str, Any]]) -> list[Item]:
    """Return the items that rows of :func:`item_rows` hold."""
    return [item_of_row(row, row.pop("captions")) for row in rows]


def vectors_of(batch: Any) -> tuple[list[str], AnyArray]:
    """Return the keys and the matrix of rows of (key, vector)."""
    column = batch["vector"]
    values = column.flatten().to_numpy(zero_copy_only=False)
    return batch["key"].to_pylist(), values.reshape(len(column), -1)


def vector_column(vectors: AnyArray) -> Any:
    """Return the column of a matrix: float32, or bytes for packed codes."""
    pa = search_package("pyarrow")
    values = np.ascontiguousarray(vectors, dtype=np.uint8 if vectors.dtype == np.uint8 else np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def membership(column: str, values: Iterable[str]) -> str:
    """Return the condition that a column has one of some texts."""
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})"


def large_batches(name: str, table: Any) -> Iterator[Any]:
    """Yield the rows of a table in batches of many bytes: each will be one commit and one file."""
    pa, held = search_package("pyarrow"), []
    try:
        for batch in table.search().to_batches():
            held.append(batch)
            if sum(each.nbytes for each in held) >= _BYTES_AT_ONCE:
                yield pa.Table.from_batches(held)
                held = []
    except (ValueError, RuntimeError, OSError) as problem:
        raise CollectionError(f"table {name} cannot be read to its end ({problem})") from None
    if held:
        yield pa.Table.from_batches(held)


def has_many_files(stats: dict[str, Any]) -> bool:
    """Return True if a table has many small files; of those that most rows are in, more are many."""
    fragments, row_bytes = stats["fragment_stats"], stats["total_bytes"] / max(1, stats["num_rows"])
    is_small = fragments["lengths"]["p50"] * row_bytes < _SMALL_BYTES
    return bool(fragments["num_small_fragments"] >= (_MANY_FRAGMENTS if is_small else _MOST_FRAGMENTS))


def has_many_deleted(stats: dict[str, Any]) -> bool:
    """Return True if a table has many rows that were deleted and are still read over."""
    written = stats["fragment_stats"]["num_fragments"] * stats["fragment_stats"]["lengths"]["mean"]
    return bool(written - stats["num_rows"] >= max(_MANY_DELETED, written / 2))
