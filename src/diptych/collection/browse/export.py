"""A collection as files for other programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.atomic_files import atomic_write
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import search_package
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
    writers = {"csv": _write_csv, "jsonl": _write_lines, "parquet": _write_parquet}
    with atomic_write(path) as draft:
        writers[kind](draft, rows)


def write_points(path: Path, kind: str, points: dict[str, tuple[list[str], AnyArray]]) -> None:
    """Write points: an array per side, and the ids of its rows (in the metadata of a safetensors file)."""
    arrays = {side: np.ascontiguousarray(matrix) for side, (_, matrix) in points.items()}
    with atomic_write(path) as draft:
        if kind == "npz":
            names = {f"{side}_ids": np.array(keys, dtype=str) for side, (keys, _) in points.items()}
            with draft.open("wb") as stream:
                np.savez(stream, allow_pickle=False, **arrays, **names)
        else:
            from safetensors.numpy import save_file

            save_file(arrays, draft, {f"{side}_ids": json.dumps(keys) for side, (keys, _) in points.items()})


_NUMBERS = ("size", "width", "height")
_LISTS = ("labels", "captions")
_COLUMNS = ("id", "path", "content_hash", *_NUMBERS, *_LISTS, "metadata", "modified", "added", "updated")


def _row(item: Item) -> dict[str, Any]:
    row = {name: getattr(item, name) for name in _COLUMNS}
    return {**row, "labels": list(item.labels), "captions": list(item.captions), "metadata": dict(item.metadata)}


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, _COLUMNS)
        writer.writeheader()
        for row in rows:
            lists = {name: json.dumps(row[name], ensure_ascii=False) for name in (*_LISTS, "metadata")}
            writer.writerow(row | lists)


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pa = search_package("pyarrow")
    kinds = dict.fromkeys(_NUMBERS, pa.int64()) | dict.fromkeys(_LISTS, pa.list_(pa.string()))
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in _COLUMNS])
    plain = [{**row, "metadata": json.dumps(row["metadata"], ensure_ascii=False)} for row in rows]
    search_package("pyarrow.parquet").write_table(pa.Table.from_pylist(plain, schema=schema), path)
