"""Array types and the checks that every input passes once, at the door."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from diptych.errors import InvalidInputError
from diptych.estimators import scikit_learn

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]


def without_gradient(values: Any) -> Any:
    """Return a tensor of PyTorch, on whatever device and learned through or not, as an array; all else as it is."""
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    # NumPy has no such numbers; a float32 holds them exactly.
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def indexed_items(items: Any, *, name: str) -> Any:
    """Return items that are asked for by their places: a column of pandas as a list, all other sequences as they are.

    >>> from diptych.arrays import indexed_items
    >>> indexed_items((word for word in ("a", "b")), name="texts")
    Traceback (most recent call last):
        ...
    diptych.errors.InvalidInputError: texts is a generator, which can be read but once; pass a list
    """
    if hasattr(items, "__next__"):
        raise InvalidInputError(f"{name} is a {type(items).__name__}, which can be read but once; pass a list")
    if not hasattr(items, "__len__"):
        raise InvalidInputError(f"{name} must be a sequence, got {type(items).__name__}; pass a list")
    if not hasattr(items, "iloc"):
        return items
    if items.ndim == 2:
        raise InvalidInputError(f"{name} is a table; pass one of its columns, or table.to_numpy() where it is features")
    return items.tolist()


def as_matrix(
    values: ArrayLike, *, name: str, width: int | None = None, columns: AnyArray | None = None, first_row: int = 0
) -> FloatArray:
    """Return ``values`` as a finite two-dimensional float array, or explain what is wrong with it.

    float32 and float64 pass through without a copy; other numbers become float64. Tensors of PyTorch and tables of
    pandas are taken as well. ``width`` is the number of columns the caller was fitted with, ``columns`` their names if
    they had any; messages count rows from ``first_row``.
    """
    if hasattr(values, "__next__"):
        raise InvalidInputError(f"{name} is a {type(values).__name__}, which can be read but once; pass an array")
    refuse_masked(values, name=name)
    if columns is not None:
        _check_columns(column_names(values, name=name), columns, name=name)
    matrix = np.asarray(without_gradient(values))
    if matrix.dtype == object and hasattr(values, "iloc"):
        matrix = _numbers_of_table(values, name)
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


def refuse_masked(values: Any, *, name: str) -> None:
    """Raise for a masked array: NumPy drops the mask, and what lies under it would be learned from."""
    # Nobody has one who has not imported its module, which few have.
    if "numpy.ma" in sys.modules and np.ma.isMaskedArray(values):
        raise InvalidInputError(
            f"{name} is a masked array, whose mask would be lost; drop its masked rows, or impute: {name}.filled(value)"
        )


def column_names(values: Any, *, name: str) -> AnyArray | None:
    """Return the names of a table's columns; None, as in scikit-learn, where there are none but numbers.

    >>> import pandas as pd
    >>> from diptych.arrays import column_names
    >>> column_names(pd.DataFrame({"red": [1.0], "blue": [2.0]}), name="images").tolist()
    ['red', 'blue']
    """
    columns = list(getattr(values, "columns", ()))
    named = [isinstance(column, str) for column in columns]
    if any(named) and not all(named):
        raise InvalidInputError(
            f"{name} has columns named by strings and others; name all alike: table.columns = table.columns.astype(str)"
        )
    return np.array(columns, dtype=str) if any(named) else None


def _check_columns(given: AnyArray | None, fitted: AnyArray, *, name: str) -> None:
    # What has no names is known by the places of its columns.
    if given is None or np.array_equal(given, fitted):
        return
    missing, others = (sorted({*some} - {*rest}) for some, rest in ((fitted, given), (given, fitted)))
    if missing or others:
        kinds = (("without", missing), ("with", others))
        words = [f"{kind} {', '.join(repr(str(column)) for column in some[:3])}" for kind, some in kinds if some]
        raise InvalidInputError(
            f"{name} has other columns than the model was fitted with, {' and '.join(words)}; rename or choose them"
        )
    raise InvalidInputError(
        f"{name} has the columns that the model was fitted with in another order; pass table[model."
        f"{name.removesuffix('s')}_feature_names_in_]"
    )


def as_labels(labels: Any, *, name: str = "labels", one_column: bool = True) -> AnyArray:
    """Return labels as an array, a class for each row or a matrix with a column for each class.

    A sparse matrix becomes a dense one. A single column of classes becomes a list, with the warning that scikit-learn
    gives; unless ``one_column`` is False, where it is the matrix of one class. What would be learned wrong is refused.

    >>> from diptych.arrays import as_labels
    >>> as_labels([b"cat", b"dog"])
    Traceback (most recent call last):
    diptych.errors.InvalidInputError: labels are bytes; decode them: [label.decode() for label in labels]
    """
    refuse_masked(labels, name=name)
    try:
        values = np.asarray(labels.toarray() if hasattr(labels, "toarray") else without_gradient(labels))
    except ValueError:
        raise InvalidInputError(f"{name} have rows of different lengths; pass a 0/1 matrix for several") from None
    if one_column and values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            f"{name} are a column, shape {values.shape}, and taken for a list; pass {name}.ravel()",
            scikit_learn("sklearn.exceptions").DataConversionWarning,
            stacklevel=3,
        )
        values = values[:, 0]
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values.flat):
        values = values.astype(str)
    if values.dtype.kind in "SO" and any(isinstance(value, bytes) for value in values.flat):
        raise InvalidInputError(f"{name} are bytes; decode them: [label.decode() for label in {name}]")
    if values.dtype.kind == "f" and (np.abs(values[np.isfinite(values)]) > LARGEST_EXACT).any():
        raise InvalidInputError(
            f"{name} hold floats beyond 2**53, where neighbouring whole numbers are one; pass integers or strings"
        )
    return values


def _numbers_of_table(table: Any, name: str) -> AnyArray:
    """Return a table of pandas whose columns mark what is missing in ways of their own; missing becomes NaN."""
    try:
        return np.asarray(table.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} has columns that are no numbers ({error}); drop or encode them") from None


def check_scale(matrix: FloatArray, *, name: str) -> None:
    """Raise when all entries are so small that their squares vanish, which leaves nothing to learn from."""
    least, peak = 1 / _largest(matrix), 0.0
    for rows in row_blocks(len(matrix)):
        peak = max(peak, -float(matrix[rows].min()), float(matrix[rows].max()))
        if peak >= least:
            return
    if peak > 0:
        raise InvalidInputError(f"{name} holds nothing above {peak:g}, and the squares of that vanish; rescale them")


def _largest(matrix: FloatArray) -> float:
    """Return what entries must stay below so that sums of squares over a few million rows are representable."""
    return 1e15 if matrix.dtype == np.float32 else 1e145


def check_finite(matrix: FloatArray, *, name: str, first_row: int = 0) -> None:
    """Raise an error that names the first bad row when ``matrix`` holds NaN, infinity or what would overflow."""
    limit = _largest(matrix)
    for rows in row_blocks(len(matrix), max(1, 1_000_000 // max(1, matrix.shape[1]))):
        block = matrix[rows]
        if _is_below(block, limit):
            continue
        finite = np.isfinite(block).all(axis=1)
        if finite.all():
            raise InvalidInputError(f"{name} holds values beyond {limit:g}, whose squares overflow; rescale them")
        first = first_row + rows.start + int(np.flatnonzero(~finite)[0])
        raise InvalidInputError(f"{name} holds NaN or infinity, first in row {first}; drop or impute such rows")


def _is_below(block: FloatArray, limit: float) -> bool:
    """Whether all entries are finite and smaller than ``limit``; a sum of squares tells it in one pass of BLAS."""
    if block.flags.c_contiguous:
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.dot(block.ravel(), block.ravel())
        if squares < limit**2:
            return True
    return bool(-limit < block.min() and block.max() < limit)


LARGEST_EXACT = 2**53
"""Up to here every whole number is a float64 of its own."""

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
    norms = np.sqrt(np.add.reduce(scaled * scaled, axis=1, keepdims=True))
    return np.asarray(scaled / np.where(norms > 0, norms, 1))
