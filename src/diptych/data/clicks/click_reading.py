"""Click logs from files, in the layouts people have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from diptych.arrays import AnyArray
from diptych.data.clicks.click_files import (
    TriadRow,
    find_click_columns,
    first_line,
    read_click_lines,
    read_named_table,
    read_parquet,
    read_plain_table,
)
from diptych.data.clicks.click_log import ClickLog, as_strings, numbers_of_strings
from diptych.data.text_files import BadRow
from diptych.errors import InvalidInputError, UnknownNameError

Progress = Callable[[int], None]
_ROWS_AT_ONCE = 100_000
ClickLayout = Literal["auto", "tsv", "csv", "jsonl", "parquet", "clickture"]
CLICK_LAYOUTS: tuple[ClickLayout, ...] = get_args(ClickLayout)


class ClickLogBuilder:
    """Collects checked rows in batches, never as one long list; ``where`` is file and kind of row, "log.tsv: line"."""

    def __init__(self, where: str, *, skip: bool = False, progress: Progress | None = None) -> None:
        self._where = where
        self._file = where.rpartition(":")[0]
        self._skip = skip
        self._progress = progress
        self._queries: dict[str, int] = {}
        self._images: dict[str, int] = {}
        self._columns: list[list[AnyArray]] = [[], [], [], []]
        self._n_rows = 0
        self._n_skipped = 0

    def add(self, rows: Iterable[TriadRow | BadRow]) -> None:
        """Check rows and keep the good ones; the first bad one is an error unless bad ones are skipped."""
        source = iter(rows)
        while batch := list(islice(source, _ROWS_AT_ONCE)):
            self._keep([triad for row in batch if (triad := self._checked(row)) is not None])
            self._n_rows += len(batch)
            if self._progress is not None:
                self._progress(self._n_rows)

    def build(self) -> ClickLog:
        """Return the log of all rows so far; nothing can be added after."""
        if not self._columns[0]:
            raise InvalidInputError(f"{self._file} holds no triads; name a file of clicks")
        columns = []
        for column in self._columns:
            columns.append(np.concatenate(column))
            column.clear()
        query_ids, image_ids, clicks, times = columns
        known = ~np.isnan(times)
        if known.any() and not known.all():
            raise InvalidInputError(
                f"{self._file}: triad {int(np.flatnonzero(~known)[0]) + 1} has no time, but others have; leave the "
                "column out"
            )
        return ClickLog(
            as_strings(self._queries),
            as_strings(self._images),
            query_ids,
            image_ids,
            clicks,
            times if known.any() else None,
            n_skipped=self._n_skipped,
        )

    def _keep(self, triads: list[tuple[str, str, float, float]]) -> None:
        if not triads:
            return
        queries, images, clicks, times = zip(*triads, strict=True)
        new: tuple[AnyArray, ...] = (
            numbers_of_strings(queries, self._queries),
            numbers_of_strings(images, self._images),
            np.array(clicks, dtype=np.float32),
            np.array(times, dtype=np.float64),
        )
        for column, values in zip(self._columns, new, strict=True):
            column.append(values)

    def _checked(self, row: TriadRow | BadRow) -> tuple[str, str, float, float] | None:
        try:
            if isinstance(row, BadRow):
                raise ValueError(row.reason)
            return (
                _checked_word(row.query, "query"),
                _checked_word(row.image, "image"),
                _checked_clicks(row.clicks),
                _checked_time(row.time),
            )
        except ValueError as error:
            if not self._skip:
                raise InvalidInputError(
                    f"{self._where} {row.place}: {error}; correct it, or pass over bad rows in Python: "
                    "read_clicks(..., skip=True)"
                ) from error
            self._n_skipped += 1
            return None


def _checked_word(value: Any, name: str) -> str:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and (word := value.strip()):
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the {name} holds half a character (a lone surrogate) at {error.start + 1}") from None
        return word
    raise ValueError(f"the {name} is {'empty' if value is None or isinstance(value, str) else 'no text'}")


def _checked_clicks(value: Any) -> float:
    try:
        clicks = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"clicks must be a number, got {value!r}") from None
    # What is smaller than the smallest 32-bit number would be stored as nothing.
    if not (1e-37 < clicks < 1e37):
        raise ValueError(f"clicks must be a number above 0, got {value!r}")
    return clicks


def _checked_time(value: Any) -> float:
    if value is None or value == "":
        return math.nan
    try:
        if isinstance(value, datetime):
            moment = value
        else:
            try:
                return _finite(float(value))
            except ValueError:
                moment = datetime.fromisoformat(value)
        # A time without a zone is taken for UTC, so that a log reads the same everywhere.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"the time must be seconds since 1970 or ISO 8601, got {value!r}") from None


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def read_clicks(
    path: str | PathLike[str],
    *,
    layout: ClickLayout = "auto",
    columns: Sequence[str] | None = None,
    skip: bool = False,
    progress: Progress | None = None,
) -> ClickLog:
    """Read a click log of any length, a batch of rows at a time.

    ============= ==================================================================================
    ``tsv``       columns query, image (or item), clicks and, if known, time, named in the first row
    ``csv``       the same with commas
    ``jsonl``     an object per line with these names
    ``parquet``   a table with these columns; needs ``diptych[parquet]``
    ``clickture`` tabs, no names, no quotes: query, image key, clicks (Hua et al., "Clickage: towards
                  bridging semantic and intent gaps via mining click logs of search engines", ACM MM 2013)
    ============= ==================================================================================

    ``auto`` goes by the file's ending and its first line; a text file may be packed (``.gz``). Without a column of
    clicks every row is one click. The tables that a service exports can be read as they are. ``columns`` names
    the columns of a ``clickture`` file in their order; by default its rows tell whether queries or keys come first,
    since keys hold no spaces. The first bad row is an error with its line; ``skip`` passes over bad rows and counts
    them in ``n_skipped``. ``progress`` is called with the number of rows read so far.

    Use it for a log that you have; :meth:`ClickLog.from_triads` makes one from columns in memory.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.data.clicks import read_clicks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.tsv"
    ...     _ = file.write_text("query\\timage\\tclicks\\nred car\\t1.jpg\\t3\\nred car\\t2.jpg\\t1\\n")
    ...     log = read_clicks(file)
    >>> log
    <ClickLog: 2 triads, 1 queries, 2 images, 4 clicks>
    """
    if layout not in CLICK_LAYOUTS:
        raise UnknownNameError("layout of a click log", str(layout), CLICK_LAYOUTS)
    file = Path(path)
    if not file.is_file():
        raise InvalidInputError(f"{file} is not a file; name the file that holds the clicks")
    known = _detected_layout(file, columns) if layout == "auto" else layout
    if columns is not None and known != "clickture":
        raise InvalidInputError(f"{file} names its columns itself; columns belong to the layout 'clickture'")
    builder = ClickLogBuilder(f"{file}: {'row' if known == 'parquet' else 'line'}", skip=skip, progress=progress)
    builder.add(_read_rows(file, known, columns))
    return builder.build()


def _detected_layout(file: Path, columns: Sequence[str] | None) -> ClickLayout:
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() != ".gz"]
    match suffixes[-1] if suffixes else "":
        case ".parquet" | ".pq":
            return "parquet"
        case ".jsonl" | ".ndjson":
            return "jsonl"
        case ".csv":
            return "csv"
    if columns is not None:
        return "clickture"
    first = first_line(file)
    if first.startswith("{"):
        return "jsonl"
    if "\t" in first:
        return "tsv" if find_click_columns(first.split("\t"), str(file)) else "clickture"
    return "csv"


def _read_rows(file: Path, layout: ClickLayout, columns: Sequence[str] | None) -> Iterator[TriadRow | BadRow]:
    match layout:
        case "parquet":
            return read_parquet(file)
        case "jsonl":
            return read_click_lines(file)
        case "csv":
            return read_named_table(file, ",")
        case "tsv":
            return read_named_table(file, "\t")
    return read_plain_table(file, columns)
