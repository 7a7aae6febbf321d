"""Array types and the checks that every input passes once, at the door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from diptych.errors import InvalidInputError

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]


def as_matrix(values: ArrayLike, *, name: str, width: int | None = None, first_row: int = 0) -> FloatArray:
    """Return ``values`` as a finite two-dimensional float array, or explain what is wrong with it.

    float32 and float64 pass through without a copy; other numbers become float64. ``width`` is the number of
    columns the caller was fitted with; messages count rows from ``first_row``.
    """
    matrix = np.asarray(values)
    if hasattr(values, "toarray"):
        raise InvalidInputError(f"{name} is a sparse matrix; pass its .toarray(), or reduce it first (TruncatedSVD)")
    if matrix.dtype == object or not (np.issubdtype(matrix.dtype, np.number) or matrix.dtype == bool):
        raise InvalidInputError(f"{name} must be a matrix of numbers, got dtype {matrix.dtype}")
    if np.iscomplexobj(matrix):
        raise InvalidInputError(f"{name} must be real numbers, got complex ones")
    if matrix.ndim != 2:
        hint = "; pictures need an encoder first (diptych.encoders)" if matrix.ndim > 2 else ""
        hint = "; for one item pass it as a single row, x.reshape(1, -1)" if matrix.ndim == 1 else hint
        raise InvalidInputError(f"{name} must have two dimensions (rows, features), got {matrix.ndim}{hint}")
    if 0 in matrix.shape:
        raise InvalidInputError(f"{name} is empty: shape {matrix.shape}")
    if width is not None and matrix.shape[1] != width:
        raise InvalidInputError(f"{name} has {matrix.shape[1]} features, but the model was fitted with {width}")
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    check_finite(matrix, name=name, first_row=first_row)
    return matrix


def check_scale(matrix: FloatArray, *, name: str) -> None:
    """Raise when all entries are so small that their squares vanish, which leaves nothing to learn from."""
    peak = max(-float(matrix.min()), float(matrix.max()))
    if 0 < peak < 1 / _largest(matrix):
        raise InvalidInputError(f"{name} holds nothing above {peak:g}, and the squares of that vanish; rescale them")


def _largest(matrix: FloatArray) -> float:
    """Return what entries must stay below so that sums of squares over a few million rows are representable."""
    return 1e15 if matrix.dtype == np.float32 else 1e145


def check_finite(matrix: FloatArray, *, name: str, first_row: int = 0) -> None:
    """Raise an error that names the first bad row when ``matrix`` holds NaN, infinity or what would overflow."""
    limit = _largest(matrix)
    for rows in row_blocks(len(matrix), max(1, 1_000_000 // max(1, matrix.shape[1]))):
        block = matrix[rows]
        if -limit < block.min() and block.max() < limit:
            continue
        finite = np.isfinite(block).all(axis=1)
        if finite.all():
            raise InvalidInputError(f"{name} holds values beyond {limit:g}, whose squares overflow; rescale them")
        first = first_row + rows.start + int(np.flatnonzero(~finite)[0])
        raise InvalidInputError(f"{name} holds NaN or infinity, first in row {first}; drop or impute such rows")


BLOCK_ROWS = 4096
"""How many rows `row_blocks` takes at a time where nobody asks for another number."""


def row_blocks(n_rows: int, block_rows: int | None = None) -> Iterator[slice]:
    """Yield consecutive slices of at most ``block_rows`` rows that together cover ``n_rows``."""
    step = BLOCK_ROWS if block_rows is None else max(1, block_rows)
    for start in range(0, n_rows, step):
        yield slice(start, min(n_rows, start + step))


def map_rows(
    function: Callable[[FloatArray], FloatArray],
    rows: FloatArray,
    width: int,
    *,
    dtype: DTypeLike | None = None,
    block_rows: int | None = None,
) -> FloatArray:
    """Return ``function`` of all rows, ``width`` columns, computed block by block; in the precision of ``rows``."""
    values = np.empty((len(rows), width), dtype=rows.dtype if dtype is None else dtype)
    for block in row_blocks(len(rows), block_rows):
        values[block] = function(rows[block])
    return values


def unit_rows(matrix: FloatArray) -> FloatArray:
    """Scale rows to unit Euclidean length; zero rows stay zero, so their cosine with anything is 0."""
    # Dividing by the largest entry first keeps the squares of very large and very small rows representable.
    peaks = np.abs(matrix).max(axis=1, keepdims=True, initial=0)
    scaled = matrix / np.where(peaks > 0, peaks, 1)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(norms > 0, norms, 1))
