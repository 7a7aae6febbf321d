"""A click log as a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.arrays import row_blocks
from diptych.data.clicks.parquet import write_parquet
from diptych.errors import UnknownNameError

if TYPE_CHECKING:
    from diptych.data.clicks.click_log import ClickLog

_ROWS_AT_ONCE = 65_536
_FORMATS = ("csv", "jsonl", "parquet", "tsv")


def write_log(log: ClickLog, path: Path) -> Path:
    """Write a log in the format of the file's ending, beside the target first, so that it is always a whole one."""
    format = path.suffix.removeprefix(".").lower()
    if format not in _FORMATS:
        raise UnknownNameError("format of a click log", format, _FORMATS)
    draft = path.with_name(f".{path.name}.part")
    try:
        if format == "parquet":
            write_parquet(log, draft)
        else:
            _write_text(log, draft, format)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def _write_text(log: ClickLog, path: Path, format: str) -> None:
    names = ["query", "image", "clicks", *([] if log.times is None else ["time"])]
    with path.open("w", encoding="utf-8", newline="") as stream:
        if format == "jsonl":
            for row in _rows(log):
                stream.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")
            return
        writer = csv.writer(stream, delimiter="," if format == "csv" else "\t", lineterminator="\n")
        writer.writerow(names)
        writer.writerows(_rows(log))


def _rows(log: ClickLog) -> Iterator[list[Any]]:
    for block in row_blocks(log.n_triads, _ROWS_AT_ONCE):
        times = [] if log.times is None else [log.times[block].tolist()]
        queries, images = log.query_ids[block].tolist(), log.image_ids[block].tolist()
        for query, image, clicks, *time in zip(queries, images, log.clicks[block], *times, strict=True):
            # The shortest decimal that reads back as the same 32-bit number; whole clicks are written without a point.
            count = int(clicks) if clicks.is_integer() else float(str(clicks))
            yield [log.queries[query], log.images[image], count, *time]
