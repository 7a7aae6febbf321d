"""Rows of the tables: their columns, and the way from items to rows and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import search_package


def table_schema(table: str) -> Any:
    """Return the columns of a fixed table: items decide what exists, captions count when their items name them."""
    pa = search_package("pyarrow")
    text = pa.string()
    if table == "captions":
        return pa.schema({"id": text, "item_id": text, "text": text})
    if table == "thumbnails":
        return pa.schema({"key": text, "jpeg": pa.binary()})
    if table == "removed":
        return pa.schema({"added_ns": pa.int64(), "removed_ns": pa.int64()})
    file = {"path": text, "content_hash": text, "size": pa.int64(), "mtime_ns": pa.int64()}
    picture = {"width": pa.int32(), "height": pa.int32()}
    described = {"labels": pa.list_(text), "metadata": text, "caption_ids": pa.list_(text)}
    return pa.schema({"id": text, **file, **picture, **described, "added_ns": pa.int64(), "updated_ns": pa.int64()})


def items_table(items: Sequence[Item]) -> Any:
    """Return the rows of items, which name their captions."""
    schema = table_schema("items")
    columns = {name: [getattr(item, name) for item in items] for name in schema.names}
    columns["metadata"] = [json.dumps(metadata, ensure_ascii=False) for metadata in columns["metadata"]]
    return search_package("pyarrow").table(columns, schema=schema)


def item_of_row(row: dict[str, Any], captions: Sequence[str]) -> Item:
    """Return the item of a row of :func:`items_table`."""
    row["caption_ids"], row["labels"] = tuple(row["caption_ids"]), tuple(row["labels"])
    row["metadata"] = json.loads(row["metadata"])
    return Item(**row, captions=tuple(captions))


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
