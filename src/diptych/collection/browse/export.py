"""A collection as files for other programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.atomic_files import atomic_write
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import search_package
from diptych.data.text_files import written_cells
from diptych.errors import InvalidInputError, UnknownNameError

FORMATS = ("csv", "jsonl", "parquet", "npz", "safetensors", "faiss")
Points = tuple[list[str], AnyArray]
"""Points in rows, and the id of each."""


def export_format(path: Path, chosen: str | None) -> str:
    """Return the chosen format, or the one that the name of the file says."""
    name = path.suffix.removeprefix(".").lower() if chosen is None else chosen
    if name not in FORMATS:
        raise UnknownNameError("export format", name, FORMATS)
    return name


def write_items(
    path: Path, kind: str, items: Iterable[Item], texts: Mapping[str, str], points: Points | None = None
) -> None:
    """Write items as a table, with the texts in their pictures by content; in CSV, lists and mappings are JSON.

    With ``points`` of pictures, which a Parquet file can hold, each item has its own; an item without a picture none.
    """
    if points is not None and kind != "parquet":
        raise InvalidInputError(f"a {kind} file holds items without points; write them to parquet, npz or safetensors")
    rows = [{**_row(item), _TEXT: texts.get(item.content_hash or "", "")} for item in items]
    if points is not None:
        places = {key: place for place, key in enumerate(points[0])}
        for row in rows:
            place = places.get(row["id"])
            row["point"] = None if place is None else points[1][place]
    writers = {"csv": _write_csv, "jsonl": _write_lines, "parquet": _write_parquet}
    with atomic_write(path) as draft:
        writers[kind](draft, rows)


def write_points(path: Path, kind: str, points: Mapping[str, Points]) -> None:
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


def write_faiss(path: Path, points: Mapping[str, Points], metric: str | None) -> None:
    """Write an exact index of FAISS for pictures, one beside it for captions, and the ids of the rows of each.

    ``photos.faiss`` and ``photos.ids.txt`` are of pictures, ``photos.captions.faiss`` and its ids of captions, where
    there are any. ``metric`` is ``inner_product``, ``l2`` or ``hamming``; None where FAISS has none.
    """
    if metric is None:
        raise InvalidInputError("FAISS cannot compare the points of this retriever; export them as npz or safetensors")
    faiss = search_package("faiss")
    for side, (keys, matrix) in points.items():
        if side != "image" and not keys:
            continue
        target = path if side == "image" else path.with_suffix(f".captions{path.suffix}")
        rows = np.ascontiguousarray(matrix)
        if metric == "hamming":
            index = faiss.IndexBinaryFlat(8 * rows.shape[1])
        else:
            index = (faiss.IndexFlatIP if metric == "inner_product" else faiss.IndexFlatL2)(rows.shape[1])
        index.add(rows)
        with atomic_write(target) as draft:
            (faiss.write_index_binary if metric == "hamming" else faiss.write_index)(index, str(draft))
        with atomic_write(target.with_suffix(".ids.txt")) as draft:
            draft.write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")


_NUMBERS = ("size", "width", "height")
_LISTS = ("labels", "captions")
_OBJECTS = ("metadata", "facts")
_KNOWN = ("id", "path", "content_hash", *_NUMBERS, *_LISTS, *_OBJECTS, "modified", "added", "updated")
_TEXT = "picture_text"
_COLUMNS = (*_KNOWN, _TEXT)


def _row(item: Item) -> dict[str, Any]:
    row = {name: getattr(item, name) for name in _KNOWN}
    lists = {"labels": list(item.labels), "captions": list(item.captions)}
    return {**row, **lists, "metadata": dict(item.metadata), "facts": dict(item.facts)}


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, _COLUMNS)
        writer.writeheader()
        for row in rows:
            lists = {name: json.dumps(row[name], ensure_ascii=False) for name in (*_LISTS, *_OBJECTS)}
            writer.writerow(dict(zip(row, written_cells((row | lists).values()), strict=True)))


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pa = search_package("pyarrow")
    kinds = dict.fromkeys(_NUMBERS, pa.int64()) | dict.fromkeys(_LISTS, pa.list_(pa.string()))
    columns = [(name, kinds.get(name, pa.string())) for name in _COLUMNS]
    if (first := next((row["point"] for row in rows if row.get("point") is not None), None)) is not None:
        columns.append(("point", pa.list_(pa.from_numpy_dtype(first.dtype), len(first))))
    schema = pa.schema(columns)
    plain = [row | {name: json.dumps(row[name], ensure_ascii=False) for name in _OBJECTS} for row in rows]
    search_package("pyarrow.parquet").write_table(pa.Table.from_pylist(plain, schema=schema), path)
