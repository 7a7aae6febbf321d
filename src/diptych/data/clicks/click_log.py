"""A log of clicks, column by column, and as a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diptych.arrays import AnyArray, BoolArray, IntArray, row_blocks
from diptych.arrow import arrow_package
from diptych.atomic_files import atomic_write
from diptych.data.item_sequences import read_only
from diptych.data.text_files import written_cells
from diptych.errors import InvalidInputError, UnknownNameError

_Number = TypeVar("_Number", np.float32, np.float64)
_ROWS_AT_ONCE = 65_536
_WRITTEN_FORMATS = ("csv", "jsonl", "parquet", "tsv")


@dataclass(frozen=True)
class Grouping:
    """The triads of every query, or of every image: group ``g`` holds ``rows[offsets[g]:offsets[g + 1]]``.

    Within a group the triads keep the order of the log.

    >>> from diptych.data.clicks import ClickLog
    >>> log = ClickLog.from_triads(["cat", "dog", "cat"], ["1", "1", "2"], [3, 1, 2])
    >>> by_query = log.by_query()
    >>> [log.image_ids[rows].tolist() for rows in by_query]
    [[0, 1], [0]]
    >>> by_query[0]
    array([0, 2])
    """

    offsets: IntArray
    rows: IntArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, group: int) -> IntArray:
        if not 0 <= group < len(self):
            raise IndexError(f"group {group} of {len(self)}")
        return self.rows[self.offsets[group] : self.offsets[group + 1]]

    def __iter__(self) -> Iterator[IntArray]:
        return (self[group] for group in range(len(self)))


def as_strings(values: Iterable[str]) -> AnyArray:
    """Return strings as one column of NumPy's own type for them, which keeps no Python object for each."""
    return np.array(list(values), dtype=np.dtypes.StringDType())


def numbers_of_strings(strings: Iterable[str], row_of: dict[str, int]) -> NDArray[np.int32]:
    """Return the row of each string in ``row_of``; strings not seen before get the next rows."""
    return np.fromiter((row_of.setdefault(string, len(row_of)) for string in strings), dtype=np.int32)


class ClickLog:
    """Triads (query, image, clicks): an image was clicked so and so often by people who asked this query.

    Queries and images are kept once each, in the order of their first appearance, and triads are three columns of
    numbers (Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", IEEE TMM 2018, learn
    from 23 million of them): a triad takes twelve bytes. Clicks are positive numbers and need not be whole, since
    clicks that are corrected for the position at which an image was shown are not.

    Attributes: ``queries`` and ``images``, columns of the distinct strings; ``query_ids`` and ``image_ids``, for each
    triad its row in these; ``clicks``; ``times``, seconds since 1970 or None; ``n_skipped``, the rows that a reader
    passed over.

    >>> from diptych.data.clicks import ClickLog
    >>> log = ClickLog.from_triads(["cat", "dog", "cat"], ["1.jpg", "2.jpg", "1.jpg"], [2, 1, 3])
    >>> log
    <ClickLog: 3 triads, 2 queries, 2 images, 6 clicks>
    >>> log.merged().clicks
    array([5., 1.], dtype=float32)
    >>> list(log.at_least(2).queries)
    ['cat']
    """

    def __init__(
        self,
        queries: AnyArray,
        images: AnyArray,
        query_ids: IntArray,
        image_ids: IntArray,
        clicks: ArrayLike,
        times: ArrayLike | None = None,
        *,
        n_skipped: int = 0,
    ) -> None:
        self.queries = read_only(queries)
        self.images = read_only(images)
        self.query_ids: NDArray[np.int32] = _numbers(query_ids, len(queries), "query_ids")
        self.image_ids: NDArray[np.int32] = _numbers(image_ids, len(images), "image_ids")
        self.clicks: NDArray[np.float32] = _clicks(clicks)
        self.times: NDArray[np.float64] | None = None if times is None else _times(times)
        self.n_skipped = n_skipped
        columns = (self.query_ids, self.image_ids, self.clicks, self.times)
        lengths = [len(column) for column in columns if column is not None]
        if len(set(lengths)) != 1:
            found = ", ".join(map(str, lengths))
            raise InvalidInputError(f"the columns of a click log must be equally long, got {found} rows")

    @classmethod
    def from_triads(
        cls, queries: Sequence[str], images: Sequence[str], clicks: ArrayLike, times: ArrayLike | None = None
    ) -> ClickLog:
        """Return a log of the given triads; equal ones are kept apart until :meth:`merged`.

        Whole numbers that name images or queries become strings, as when a file is read.
        """
        row_of_query: dict[str, int] = {}
        row_of_image: dict[str, int] = {}
        query_ids = numbers_of_strings(_strings(queries, "queries"), row_of_query)
        image_ids = numbers_of_strings(_strings(images, "images"), row_of_image)
        return cls(as_strings(row_of_query), as_strings(row_of_image), query_ids, image_ids, clicks, times)

    @property
    def n_triads(self) -> int:
        """The rows of the log: a triad is a query, an image and its clicks."""
        return len(self.clicks)

    def merged(self) -> ClickLog:
        """Return the log with one triad per query and image: clicks are added, and the latest time is kept."""
        keys = self.query_ids.astype(np.int64) * max(1, len(self.images)) + self.image_ids
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        clicks = np.bincount(group, weights=self.clicks, minlength=len(first))[order]
        times = None
        if self.times is not None:
            latest = np.full(len(first), -np.inf)
            np.maximum.at(latest, group, self.times)
            times = latest[order]
        kept = first[order]
        return ClickLog(self.queries, self.images, self.query_ids[kept], self.image_ids[kept], clicks, times)

    def at_least(self, clicks: float) -> ClickLog:
        """Return the triads with at least so many clicks; merge first if one pair may stand in several triads."""
        return self.select(self.clicks >= clicks)

    def select(self, rows: IntArray | BoolArray | Sequence[int]) -> ClickLog:
        """Return the log of the given triads, in the given order.

        Queries and images without a triad are gone, so rows of ``images`` move: look them up with :meth:`image_rows`.
        """
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64)
        kept_queries, query_ids = _renumbered(self.query_ids[chosen], len(self.queries))
        kept_images, image_ids = _renumbered(self.image_ids[chosen], len(self.images))
        return ClickLog(
            self.queries[kept_queries],
            self.images[kept_images],
            query_ids,
            image_ids,
            self.clicks[chosen],
            None if self.times is None else self.times[chosen],
        )

    def split(
        self,
        held_out: float = 0.2,
        *,
        before: float | None = None,
        by: Literal["query", "time"] = "query",
        seed: int = 0,
    ) -> tuple[ClickLog, ClickLog]:
        """Return a log to learn from and a log that was held out.

        ``by="query"`` holds out a random share of the queries with all their triads, which asks how a method does on
        queries it has never seen. ``by="time"`` holds out the latest share of the triads, or, with ``before``, all from
        that time on (seconds since 1970), which asks how it does tomorrow.

        >>> from diptych.data.clicks import ClickLog
        >>> log = ClickLog.from_triads(["a", "b", "a", "c"], ["1", "2", "3", "4"], [1, 1, 1, 1], times=[9, 7, 8, 6])
        >>> [part.n_triads for part in log.split(by="time", before=8)]
        [2, 2]
        >>> train, held_out = log.split(1 / 3)
        >>> set(train.queries) & set(held_out.queries)
        set()
        """
        if before is None and not 0 < held_out < 1:
            raise InvalidInputError(f"held_out is the share to hold out, above 0 and below 1; got {held_out}")
        if before is not None or by == "time":
            is_late = self._late(held_out, before)
        elif by == "query":
            count = len(self.queries)
            drawn = np.random.default_rng(seed).permutation(count)[: max(1, round(held_out * count))]
            is_held_out = np.zeros(count, dtype=bool)
            is_held_out[drawn] = True
            is_late = is_held_out[self.query_ids]
        else:
            raise UnknownNameError("way to split a click log", by, ("query", "time"))
        return self.select(~is_late), self.select(is_late)

    def _late(self, held_out: float, before: float | None) -> BoolArray:
        if self.times is None:
            raise InvalidInputError("this click log has no times; split it by query, or read a log with a time column")
        if before is not None:
            return np.asarray(self.times >= before)
        latest = np.argsort(self.times, kind="stable")[self.n_triads - max(1, round(held_out * self.n_triads)) :]
        is_late = np.zeros(self.n_triads, dtype=bool)
        is_late[latest] = True
        return is_late

    def by_query(self) -> Grouping:
        """Return the rows of the log by ``query_ids``."""
        return _grouped(self.query_ids, len(self.queries))

    def by_image(self) -> Grouping:
        """Return the rows of the log by ``image_ids``."""
        return _grouped(self.image_ids, len(self.images))

    def image_rows(self, ids: Sequence[str] | Mapping[str, int]) -> NDArray[np.int64]:
        """Return for each of the log's images its row in ``ids``, to pick features that are stored in that order.

        >>> from diptych.data.clicks import ClickLog
        >>> ClickLog.from_triads(["cat", "dog"], ["7.jpg", "5.jpg"], [1, 1]).image_rows(["5.jpg", "6.jpg", "7.jpg"])
        array([2, 0])
        """
        row_of = ids if isinstance(ids, Mapping) else {name: row for row, name in enumerate(ids)}
        rows = np.fromiter((row_of.get(image, -1) for image in self.images), dtype=np.int64, count=len(self.images))
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            raise InvalidInputError(
                f"{len(missing)} images of the click log are not among the given ids, the first is "
                f"{self.images[int(missing[0])]!r}; select the triads of the images you have"
            )
        return rows

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the triads as a table with named columns; .tsv, .csv, .jsonl and .parquet say the format."""
        target = Path(path)
        format = target.suffix.removeprefix(".").lower()
        if format not in _WRITTEN_FORMATS:
            raise UnknownNameError("format of a click log", format, _WRITTEN_FORMATS)
        with atomic_write(target) as draft:
            if format == "parquet":
                _write_parquet(self, draft)
            else:
                _write_text(self, draft, format)
        return target

    def __len__(self) -> int:
        return self.n_triads

    def __repr__(self) -> str:
        clicks = float(self.clicks.sum(dtype=np.float64))
        return (
            f"<ClickLog: {self.n_triads:,} triads, {len(self.queries):,} queries, {len(self.images):,} images, "
            f"{clicks:,.6g} clicks>"
        )


def _numbers(ids: IntArray, limit: int, name: str) -> NDArray[np.int32]:
    numbers = np.asarray(ids, dtype=np.int32)
    if numbers.ndim != 1:
        raise InvalidInputError(f"{name} must be one column, got shape {numbers.shape}")
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < limit):
        raise InvalidInputError(f"{name} must be rows 0..{limit - 1}, got {numbers.min()}..{numbers.max()}")
    return read_only(numbers)


def _strings(values: Iterable[object], name: str) -> Iterator[str]:
    if isinstance(values, str):
        raise InvalidInputError(f"{name} must be several strings, got one string; pass it in a list")
    for row, value in enumerate(values):
        if isinstance(value, str):
            yield value
        elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            yield str(value)
        else:
            raise InvalidInputError(f"{name} must be strings, got {value!r} in row {row}; leave such rows out")


def _column(values: ArrayLike, dtype: type[_Number], name: str) -> NDArray[_Number]:
    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be one column of numbers: {error}") from error


def _clicks(clicks: ArrayLike) -> NDArray[np.float32]:
    values = _column(clicks, np.float32, "clicks")
    bad = np.flatnonzero(~((values > 0) & np.isfinite(values)))
    if values.ndim != 1 or len(bad):
        found = f"shape {values.shape}" if values.ndim != 1 else f"{values[bad[0]]} in row {bad[0]}"
        raise InvalidInputError(
            f"clicks must be one column of numbers above 0, got {found}; leave out what nobody clicked"
        )
    return read_only(values)


def _times(times: ArrayLike) -> NDArray[np.float64]:
    values = _column(times, np.float64, "times")
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InvalidInputError(
            "times must be one column of seconds since 1970, without gaps; leave them all out, or none"
        )
    return read_only(values)


def _renumbered(ids: NDArray[np.int32], limit: int) -> tuple[IntArray, NDArray[np.int32]]:
    """Return the ids in use, by first appearance, and each id's place among them."""
    first = np.full(limit, len(ids), dtype=np.int64)
    # Written from the end, so that the earliest row of an id is the one that stays.
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    used = np.flatnonzero(first < len(ids))
    order = used[np.argsort(first[used])]
    places = np.zeros(limit, dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return order, places[ids]


def _grouped(ids: NDArray[np.int32], count: int) -> Grouping:
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(ids, minlength=count), out=offsets[1:])
    rows: AnyArray = np.argsort(ids, kind="stable")
    return Grouping(read_only(offsets), read_only(rows))


def _write_parquet(log: ClickLog, path: Path) -> None:
    """Write the triads batch by batch; a query or image is stored once per group of rows."""
    pa = arrow_package("writing Parquet files")
    fields = [("query", pa.string()), ("image", pa.string()), ("clicks", pa.float32())]
    schema = pa.schema([*fields, *([] if log.times is None else [("time", pa.float64())])])
    with pa.parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, log.n_triads, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            columns: list[Any] = [
                _arrow_strings(pa, log.queries, log.query_ids[rows]),
                _arrow_strings(pa, log.images, log.image_ids[rows]),
                pa.array(log.clicks[rows]),
            ]
            if log.times is not None:
                columns.append(pa.array(log.times[rows]))
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _arrow_strings(pa: Any, table: Any, ids: Any) -> Any:
    used, places = np.unique(ids, return_inverse=True)
    words = pa.array([table[int(row)] for row in used], pa.string())
    return words.take(pa.array(places))


def _write_text(log: ClickLog, path: Path, format: str) -> None:
    names = ["query", "image", "clicks", *([] if log.times is None else ["time"])]
    with path.open("w", encoding="utf-8", newline="") as stream:
        if format == "jsonl":
            for row in _text_rows(log):
                stream.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")
            return
        writer = csv.writer(stream, delimiter="," if format == "csv" else "\t", lineterminator="\n")
        writer.writerow(names)
        writer.writerows(map(written_cells, _text_rows(log)))


def _text_rows(log: ClickLog) -> Iterator[list[Any]]:
    for block in row_blocks(log.n_triads, _ROWS_AT_ONCE):
        times = [] if log.times is None else [log.times[block].tolist()]
        queries, images = log.query_ids[block].tolist(), log.image_ids[block].tolist()
        for query, image, clicks, *time in zip(queries, images, log.clicks[block], *times, strict=True):
            # The shortest decimal that reads back as the same 32-bit number; whole clicks are written without a point.
            count = int(clicks) if clicks.is_integer() else float(str(clicks))
            yield [log.queries[query], log.images[image], count, *time]
