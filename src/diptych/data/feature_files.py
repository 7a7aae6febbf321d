"""Features in files that may be larger than memory: aligned rows of both sides, read block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray, as_matrix
from diptych.arrow import arrow_package
from diptych.errors import InvalidInputError

# What is read, and therefore what comes out to the last bit, depends on the files alone: never on cores or workers.
_PART_ROWS, _BLOCK_ROWS = 65_536, 8_192
_READ_AHEAD_BYTES = 1 << 20
_KINDS = "a folder with images.npy and texts.npy, or Parquet files with columns images and texts"

Side = Literal["images", "texts", "labels"]
Table = TypeVar("Table", bound="FeatureFiles")


class FeatureRows(NamedTuple):
    """Aligned rows of both sides and, where they were asked for, their labels."""

    images: FloatArray
    texts: FloatArray
    labels: AnyArray | None


@dataclass(frozen=True)
class FeatureFiles(ABC):
    """Aligned features on disk, of which a block of rows at a time is read.

    `parts` divides the rows into tasks, `blocks` reads one of them. `open_features` finds out what a path holds.
    """

    n_rows: int
    image_width: int
    text_width: int
    has_labels: bool

    def parts(self) -> list[range]:
        """Return consecutive ranges of rows that are worth a task each."""
        return [range(start, min(self.n_rows, start + _PART_ROWS)) for start in range(0, self.n_rows, _PART_ROWS)]

    def blocks(self, part: range, *, labels: bool = False) -> Iterator[FeatureRows]:
        """Read one of `parts`, a block of rows after another; float16 becomes float32, whole numbers float64."""
        start = part.start
        for columns in self._read(part, ("images", "texts", "labels") if labels else ("images", "texts")):
            yield FeatureRows(
                _matrix(columns["images"], "images", self.image_width, start),
                _matrix(columns["texts"], "texts", self.text_width, start),
                columns.get("labels"),
            )
            start += len(columns["images"])

    def classes(self) -> AnyArray:
        """Return every class that a row has, sorted; for a label matrix, the numbers of its columns."""
        if not self.has_labels:
            raise InvalidInputError("the method learns from labels, and the files hold none; add them beside the texts")
        found = None
        for part in self.parts():
            for columns in self._read(part, ("labels",)):
                labels = columns["labels"]
                if labels.ndim == 2:
                    return np.arange(labels.shape[1])
                values = np.unique(labels.astype(str) if labels.dtype == object else labels)
                found = values if found is None else np.union1d(found, values)
        assert found is not None, "files without rows are refused when they are opened"
        return found

    @abstractmethod
    def _read(self, part: range, sides: Sequence[Side]) -> Iterator[dict[str, AnyArray]]:
        """Yield the arrays of consecutive rows of a part."""


def open_features(
    path: str | PathLike[str], *, images: str = "images", texts: str = "texts", labels: str = "labels"
) -> FeatureFiles:
    """Open features that lie in files; the rows stay there until they are asked for.

    - a folder with ``images.npy``, ``texts.npy`` and perhaps ``labels.npy``;
    - a Parquet file, or a folder of them in the order of their names, with columns ``images`` and ``texts`` that hold a
      list of numbers in each row, and perhaps ``labels``; what is read at once by one task is whole row groups.

    Row i of one side belongs to row i of the other. Labels are one class per row, or rows of 0 and 1. The parameters
    are the names of files or columns, where they are called otherwise. Nothing in the files is executed.

    >>> import tempfile
    >>> import numpy as np
    >>> from diptych.data import open_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/images.npy", np.ones((100_000, 3), dtype=np.float16))
    ...     np.save(f"{folder}/texts.npy", np.zeros((100_000, 2), dtype=np.float32))
    ...     features = open_features(folder)
    ...     parts = features.parts()
    ...     first = next(features.blocks(parts[0]))
    >>> features.n_rows, len(parts), first.images.shape, first.images.dtype.name
    (100000, 2, (8192, 3), 'float32')
    """
    place = Path(path)
    names: dict[Side, str] = {"images": images, "texts": texts, "labels": labels}
    if place.is_file():
        return ParquetFeatures.open([place], names)
    if (place / f"{images}.npy").exists():
        return NumpyFeatures.open(place, names)
    tables = sorted(place.glob("*.parquet"))
    if not tables:
        raise InvalidInputError(f"{place} holds no features; wanted are {_KINDS}")
    return ParquetFeatures.open(tables, names)


def _matrix(values: AnyArray, name: str, width: int, first_row: int) -> FloatArray:
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    if values.ndim == 2 and values.shape[1] != width:
        raise InvalidInputError(f"{name} has {values.shape[1]} features from row {first_row} on, and {width} before")
    return as_matrix(values, name=name, first_row=first_row)


@dataclass(frozen=True)
class NumpyFile:
    """Where the rows of an array lie in a ``.npy`` file."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int

    @classmethod
    def open(cls, path: Path) -> NumpyFile:
        """Read the header."""
        try:
            # Mapping the file reads no row.
            mapped = np.load(path, mmap_mode="r")
            shape, dtype, offset, in_rows = mapped.shape, mapped.dtype, mapped.offset, mapped.flags.c_contiguous
        except Exception as problem:  # NumPy reads the header as Python's source, and passes on whatever comes of it.
            raise InvalidInputError(f"{path} is no readable .npy file ({problem}); write it with numpy.save") from None
        if not in_rows:
            raise InvalidInputError(f"{path} lies column by column; save numpy.ascontiguousarray(array) instead")
        return cls(path, shape, dtype, offset)

    def read(self, rows: range) -> AnyArray:
        """Read some rows. Plain reading takes memory for them alone; the pages of a mapping would add up."""
        shape = (len(rows), *self.shape[1:])
        width = int(np.prod(self.shape[1:], dtype=np.int64))
        with self.path.open("rb") as stream:
            stream.seek(self.offset + rows.start * width * self.dtype.itemsize)
            values = np.fromfile(stream, dtype=self.dtype, count=len(rows) * width)
        if len(values) < len(rows) * width:
            raise InvalidInputError(f"{self.path} has become shorter while it was read; write it again")
        return values.reshape(shape)


@dataclass(frozen=True)
class NumpyFeatures(FeatureFiles):
    """A folder of ``.npy`` files."""

    files: dict[Side, NumpyFile]

    @classmethod
    def open(cls, folder: Path, names: dict[Side, str]) -> NumpyFeatures:
        """Read the headers."""
        paths: dict[Side, Path] = {side: folder / f"{name}.npy" for side, name in names.items()}
        if not paths["labels"].exists():
            del paths["labels"]
        files = {side: NumpyFile.open(path) for side, path in paths.items()}
        for side in ("images", "texts"):
            shape = files[side].shape
            if len(shape) != 2 or 0 in shape:
                raise InvalidInputError(f"{files[side].path} must hold rows of features, and its shape is {shape}")
        lengths = {side: file.shape[:1] for side, file in files.items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{length[0] if length else 0} {side}" for side, length in lengths.items())
            raise InvalidInputError(f"{folder} must hold aligned rows, got {found}")
        n_rows, image_width = files["images"].shape
        return cls(n_rows, image_width, files["texts"].shape[1], "labels" in files, files)

    def _read(self, part: range, sides: Sequence[Side]) -> Iterator[dict[str, AnyArray]]:
        for start in range(part.start, part.stop, _BLOCK_ROWS):
            rows = range(start, min(part.stop, start + _BLOCK_ROWS))
            yield {side: self.files[side].read(rows) for side in sides}


@dataclass(frozen=True)
class ParquetFeatures(FeatureFiles):
    """Parquet files one after the other; ``groups`` are their row groups, with the number of each one's first row."""

    names: dict[Side, str]
    groups: tuple[tuple[int, Path, int], ...]

    @classmethod
    def open(cls, paths: Sequence[Path], names: dict[Side, str]) -> ParquetFeatures:
        """Read what the files say about themselves, and the first rows."""
        groups: list[tuple[int, Path, int]] = []
        n_rows, has_labels = 0, True
        for path in paths:
            with _parquet_file(path) as file:
                _check_columns(file.schema_arrow.names, names, path)
                has_labels &= names["labels"] in file.schema_arrow.names
                for number in range(file.metadata.num_row_groups):
                    groups.append((n_rows, path, number))
                    n_rows += file.metadata.row_group(number).num_rows
        if n_rows == 0:
            raise InvalidInputError(f"{paths[0]} holds no rows")
        return _with_widths(cls(n_rows, 0, 0, has_labels, names, tuple(groups)))

    def parts(self) -> list[range]:
        """Return consecutive ranges of rows that are worth a task each, of whole row groups."""
        starts = [0]
        for start, _, _ in self.groups:
            if start - starts[-1] >= _PART_ROWS:
                starts.append(start)
        return [range(start, stop) for start, stop in pairwise([*starts, self.n_rows])]

    def _read(self, part: range, sides: Sequence[Side]) -> Iterator[dict[str, AnyArray]]:
        columns = [self.names[side] for side in sides]
        for start, path, number in self.groups:
            if start in part:
                with _parquet_file(path) as file:
                    for batch in file.iter_batches(_BLOCK_ROWS, row_groups=[number], columns=columns):
                        yield {side: _column(batch, self.names[side]) for side in sides}


def _parquet_file(path: Path) -> Any:
    parquet = arrow_package("reading Parquet files").parquet
    try:
        # A buffer makes it read as it goes, instead of a whole row group first.
        return parquet.ParquetFile(path, buffer_size=_READ_AHEAD_BYTES)
    except (OSError, ValueError) as problem:
        raise InvalidInputError(f"{path} is no readable Parquet file ({problem}); wanted are {_KINDS}") from None


def _check_columns(found: Sequence[str], names: dict[Side, str], path: Path) -> None:
    missing = [names[side] for side in ("images", "texts") if names[side] not in found]
    if missing:
        raise InvalidInputError(f"{path} has no column {missing[0]!r}; it has {', '.join(found)}")


def _with_widths(features: Table) -> Table:
    """Return the same with the widths of the first rows."""
    first = next(features._read(features.parts()[0], ("images", "texts")))
    for side, rows in first.items():
        if rows.ndim != 2:
            raise InvalidInputError(f"the column of {side} must hold a list of numbers in each row")
    return replace(features, image_width=first["images"].shape[1], text_width=first["texts"].shape[1])


def _column(batch: Any, name: str) -> AnyArray:
    """Return a column as a vector, or as a matrix where each of its rows is a list."""
    types = arrow_package("reading Parquet files").types
    column = batch.column(name)
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    is_matrix = types.is_fixed_size_list(column.type) or types.is_list(column.type) or types.is_large_list(column.type)
    values = column.flatten() if is_matrix else column
    if column.null_count or values.null_count:
        raise InvalidInputError(f"the column {name} has missing values; drop these rows")
    array: AnyArray = values.to_numpy(zero_copy_only=False)
    if not is_matrix:
        return array
    width = len(array) // max(1, len(column))
    if not types.is_fixed_size_list(column.type) and (column.value_lengths().to_numpy() != width).any():
        raise InvalidInputError(f"the column {name} has lists of different lengths; features need one length")
    return array.reshape(len(column), width)
