"""From rows of a file to a click log."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.data.clicks.click_log import ClickLog
from diptych.data.clicks.interner import Interner
from diptych.data.clicks.rows import BadRow, TriadRow
from diptych.errors import InvalidInputError

Progress = Callable[[int], None]

_ROWS_AT_ONCE = 100_000


class Gathering:
    """Collects checked rows, a batch at a time, so that a long file never becomes a long list of Python objects.

    ``where`` names the file and what its rows are called, for errors: ``"log.tsv: line"``.
    """

    def __init__(self, where: str, *, skip: bool = False, progress: Progress | None = None) -> None:
        self._where = where
        self._file = where.rpartition(":")[0]
        self._skip = skip
        self._progress = progress
        self._queries, self._images = Interner(), Interner()
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

    def log(self) -> ClickLog:
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
            self._queries.table(),
            self._images.table(),
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
            self._queries.numbers(queries),
            self._images.numbers(images),
            np.array(clicks, dtype=np.float32),
            np.array(times, dtype=np.float64),
        )
        for column, values in zip(self._columns, new, strict=True):
            column.append(values)

    def _checked(self, row: TriadRow | BadRow) -> tuple[str, str, float, float] | None:
        try:
            if isinstance(row, BadRow):
                raise ValueError(row.reason)
            return _word(row.query, "query"), _word(row.image, "image"), _count(row.clicks), _seconds(row.time)
        except ValueError as error:
            if not self._skip:
                raise InvalidInputError(
                    f"{self._where} {row.place}: {error}; correct it, or pass over bad rows in Python: "
                    "read_clicks(..., skip=True)"
                ) from error
            self._n_skipped += 1
            return None


def _word(value: Any, name: str) -> str:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and (word := value.strip()):
        return word
    raise ValueError(f"the {name} is {'empty' if value is None or isinstance(value, str) else 'no text'}")


def _count(value: Any) -> float:
    try:
        clicks = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"clicks must be a number, got {value!r}") from None
    # What is smaller than the smallest 32-bit number would be stored as nothing.
    if not (1e-37 < clicks < 1e37):
        raise ValueError(f"clicks must be a number above 0, got {value!r}")
    return clicks


def _seconds(value: Any) -> float:
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
