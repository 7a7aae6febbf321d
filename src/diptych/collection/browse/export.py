"""A collection as files for other programs."""

from __future__ import annotations

import csv
import json
import os
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.storage.item import Item
from diptych.collection.storage.store import search_package
from diptych.errors import UnknownNameError

FORMATS = ("csv", "jsonl", "parquet", "npz", "safetensors")


def export_format(path: Path, chosen: str | None) -> str:
    """Return the chosen format, or the one that the name of the file says."""
    name = path.suffix.removeprefix(".").lower() if chosen is None else chosen
    if name not in FORMATS:
        raise UnknownNameError("export format", name, FORMATS)
    return name


def write_items(path: Path, kind: str, items: Iterable[Item]) -> None:
    """Write items as a table; in CSV, lists and metadata are JSON."""
    rows = [_row(item) for item in items]
    writers: dict[str, Callable[[Path], None]] = {
        "csv": lambda draft: _write_csv(draft, rows),
        "jsonl": lambda draft: _write_lines(draft, rows),
        "parquet": lambda draft: _write_parquet(draft, rows),
    }
    _whole(path, writers[kind])


def write_points(path: Path, kind: str, points: dict[str, tuple[list[str], AnyArray]]) -> None:
    """Write points: an array per side, and the ids of its rows (in the metadata of a safetensors file)."""
    arrays = {side: np.ascontiguousarray(matrix) for side, (_, matrix) in points.items()}
    if kind == "npz":
        names = {f"{side}_ids": np.array(keys, dtype=str) for side, (keys, _) in points.items()}
        _whole(path, lambda draft: _write_npz(draft, {**arrays, **names}))
    else:
        labels = {f"{side}_ids": json.dumps(keys) for side, (keys, _) in points.items()}
        _whole(path, lambda draft: _write_safetensors(draft, arrays, labels))


def _row(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "path": item.path,
        "content_hash": item.content_hash,
        "size": item.size,
        "width": item.width,
        "height": item.height,
        "labels": list(item.labels),
        "captions": list(item.captions),
        "metadata": dict(item.metadata),
        "modified": item.modified,
        "added": item.added,
        "updated": item.updated,
    }


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
        for name, value in row.items()
    }


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        names = list(_row(Item("", None, None)))
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(_flat(row) for row in rows)


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pa = search_package("pyarrow")
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("id", "path", "content_hash")),
            *((name, pa.int64()) for name in ("size", "width", "height")),
            *((name, pa.list_(pa.string())) for name in ("labels", "captions")),
            *((name, pa.string()) for name in ("metadata", "modified", "added", "updated")),
        ]
    )
    plain = [{**row, "metadata": json.dumps(row["metadata"], ensure_ascii=False)} for row in rows]
    search_package("pyarrow.parquet").write_table(pa.Table.from_pylist(plain, schema=schema), path)


def _write_npz(path: Path, arrays: dict[str, AnyArray]) -> None:
    with path.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def _write_safetensors(path: Path, arrays: dict[str, AnyArray], labels: dict[str, str]) -> None:
    from safetensors.numpy import save_file

    save_file(arrays, path, metadata=labels)


def _whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write beside the target and rename, so that a file of that name is always a whole one."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        write(draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
