"""The columns of the store's tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.item import Item
from diptych.collection.packages import search_package


def items_schema() -> Any:
    """Return the columns of the items table; its rows decide what exists."""
    pa = search_package("pyarrow")
    return pa.schema(
        [
            ("id", pa.string()),
            ("path", pa.string()),
            ("content_hash", pa.string()),
            ("size", pa.int64()),
            ("mtime_ns", pa.int64()),
            ("width", pa.int32()),
            ("height", pa.int32()),
            ("labels", pa.list_(pa.string())),
            ("metadata", pa.string()),
            ("caption_ids", pa.list_(pa.string())),
            ("added_ns", pa.int64()),
            ("updated_ns", pa.int64()),
        ]
    )


def captions_schema() -> Any:
    """Return the columns of the captions table; a caption counts when its item names it."""
    pa = search_package("pyarrow")
    return pa.schema([("id", pa.string()), ("item_id", pa.string()), ("text", pa.string())])


def thumbnails_schema() -> Any:
    """Return the columns of the thumbnails table, named by the picture's content."""
    pa = search_package("pyarrow")
    return pa.schema([("key", pa.string()), ("jpeg", pa.binary())])


def items_table(items: Sequence[Item]) -> Any:
    """Return items as rows."""
    rows = [
        {
            "id": item.id,
            "path": item.path,
            "content_hash": item.content_hash,
            "size": item.size,
            "mtime_ns": item.mtime_ns,
            "width": item.width,
            "height": item.height,
            "labels": list(item.labels),
            "metadata": json.dumps(item.metadata, ensure_ascii=False),
            "caption_ids": list(item.caption_ids),
            "added_ns": item.added_ns,
            "updated_ns": item.updated_ns,
        }
        for item in items
    ]
    return search_package("pyarrow").Table.from_pylist(rows, schema=items_schema())


def items_of(table: Any, captions: Mapping[str, str]) -> list[Item]:
    """Return the items of rows, with their captions."""
    columns = {name: table[name].to_pylist() for name in table.column_names}
    return [_item(dict(zip(columns, values, strict=True)), captions) for values in zip(*columns.values(), strict=True)]


def _item(row: dict[str, Any], captions: Mapping[str, str]) -> Item:
    ids = tuple(row.pop("caption_ids"))
    row["labels"] = tuple(row["labels"])
    row["metadata"] = json.loads(row["metadata"])
    return Item(**row, caption_ids=ids, captions=tuple(captions[name] for name in ids))


def vectors_table(keys: Sequence[str], vectors: AnyArray) -> Any:
    """Return rows of (key, vector); float32, or bytes for packed codes."""
    pa = search_package("pyarrow")
    values = np.ascontiguousarray(vectors, dtype=np.uint8 if vectors.dtype == np.uint8 else np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    return pa.table({"key": pa.array(list(keys), pa.string()), "vector": column})


def vector_form(schema: Any) -> tuple[int, np.dtype[Any]]:
    """Return the width and the kind of numbers of a table of vectors."""
    column = schema.field("vector").type
    return int(column.list_size), np.dtype(column.value_type.to_pandas_dtype())


def vectors_of(batch: Any) -> tuple[list[str], AnyArray]:
    """Return the keys and the matrix of rows of (key, vector)."""
    column = batch["vector"]
    values = column.flatten().to_numpy(zero_copy_only=False)
    return batch["key"].to_pylist(), values.reshape(len(column), -1)
