"""Clicks in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.data.clicks.columns import find_columns
from diptych.data.clicks.rows import BadRow, TriadRow
from diptych.errors import InvalidInputError, MissingPackageError

if TYPE_CHECKING:
    from diptych.data.clicks.click_log import ClickLog

_ROWS_AT_ONCE = 65_536


def read_parquet(path: Path) -> Iterator[TriadRow | BadRow]:
    """Yield the rows of a file, of which only one batch is in memory."""
    parquet = _parquet("reading")
    try:
        file = parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} is no readable Parquet file ({error}); get a fresh copy") from error
    with file:
        names = file.schema_arrow.names
        columns = find_columns(names, str(path))
        if columns is None:
            raise InvalidInputError(f"{path} needs the columns query, image and clicks; it has {', '.join(names)}")
        wanted = [name for name in columns if name is not None]
        place = 0
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted):
            listed = {name: batch.column(name).to_pylist() for name in wanted}
            nothing = [None] * len(batch)
            clicks = [1] * len(batch) if columns.clicks is None else listed[columns.clicks]
            times = nothing if columns.time is None else listed[columns.time]
            for row in zip(listed[columns.query], listed[columns.image], clicks, times, strict=True):
                place += 1
                yield TriadRow(place, *row)


def write_parquet(log: ClickLog, path: Path) -> None:
    """Write the triads batch by batch; a query or image is stored once per group of rows."""
    parquet = _parquet("writing")
    import pyarrow as pa

    fields = [("query", pa.string()), ("image", pa.string()), ("clicks", pa.float32())]
    schema = pa.schema([*fields, *([] if log.times is None else [("time", pa.float64())])])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, log.n_triads, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            columns: list[Any] = [
                _strings(log.queries, log.query_ids[rows]),
                _strings(log.images, log.image_ids[rows]),
                pa.array(log.clicks[rows]),
            ]
            if log.times is not None:
                columns.append(pa.array(log.times[rows]))
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _strings(table: Any, ids: Any) -> Any:
    import pyarrow as pa

    used, places = np.unique(ids, return_inverse=True)
    words = pa.array([table[int(row)] for row in used], pa.string())
    return words.take(pa.array(places))


def _parquet(doing: str) -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingPackageError(f"{doing} Parquet files", "pyarrow") from error
    return parquet
