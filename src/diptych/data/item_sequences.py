"""The two forms one side of a data set can take: a feature matrix, or a sequence of raw items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray, as_matrix, without_gradient
from diptych.errors import InvalidInputError

Items = FloatArray | Sequence[Any]


class SelectedItems(Sequence[Any]):
    """Some rows of a sequence, in a given order, fetched only when asked for.

    It keeps a data set of a hundred thousand lazily rendered pictures lazy after a split.

    >>> from diptych.data.item_sequences import SelectedItems
    >>> list(SelectedItems("abcd", [3, 0, 3]))
    ['d', 'a', 'd']
    """

    def __init__(self, items: Sequence[Any], rows: Sequence[int] | IntArray) -> None:
        chosen = np.asarray(rows, dtype=np.int64)
        self.source: Sequence[Any] = items.source if isinstance(items, SelectedItems) else items
        self.rows: IntArray = items.rows[chosen] if isinstance(items, SelectedItems) else chosen

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> SelectedItems: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return SelectedItems(self.source, self.rows[index])
        return self.source[int(self.rows[index])]

    def __iter__(self) -> Iterator[Any]:
        return (self.source[int(row)] for row in self.rows)

    def __repr__(self) -> str:
        return f"<{len(self)} of {self.source!r}>"


def is_listed(items: Sequence[Any]) -> bool:
    """Return True if items are there already, and not made when they are asked for."""
    return isinstance(items.source if isinstance(items, SelectedItems) else items, (list, tuple))


def is_features(items: Items) -> bool:
    """Return True if the items are a feature matrix rather than raw pictures or words."""
    return isinstance(items, np.ndarray) and items.ndim == 2


def as_items(items: Any, *, name: str) -> Items:
    """Return a finite read-only feature matrix, a tuple of raw items, or the lazy sequence as given."""
    if isinstance(items, (str, bytes)):
        raise InvalidInputError(f"{name} must be a sequence of items, got one string; pass it in a list")
    items = without_gradient(items)
    if hasattr(items, "iloc"):
        items = as_matrix(items, name=name) if items.ndim == 2 else items.tolist()
    if isinstance(items, np.ndarray):
        return _array_items(items, name=name)
    if isinstance(items, (list, tuple)):
        return _listed_items(items, name=name)
    if isinstance(items, Sequence):
        return items
    raise InvalidInputError(
        f"{name} must be a feature matrix (rows, features) or a sequence of raw items, got {type(items).__name__}"
    )


def _listed_items(items: list[Any] | tuple[Any, ...], *, name: str) -> Items:
    # Nested lists of numbers are a matrix that was written down by hand.
    is_matrix = bool(items) and all(isinstance(item, (list, tuple)) or _is_vector(item) for item in items)
    if not is_matrix:
        return tuple(items)
    if len({len(item) for item in items}) != 1:
        raise InvalidInputError(f"{name} has rows of different lengths; every item needs the same number of features")
    return _array_items(np.array(items), name=name)


def _is_vector(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.ndim == 1


def _array_items(items: AnyArray, *, name: str) -> Items:
    if items.ndim == 2 and items.dtype.kind != "O":
        return read_only(as_matrix(items, name=name))
    if items.ndim == 1 and items.dtype.kind in "UO":
        return tuple(items.tolist())
    if items.ndim in (3, 4) and items.dtype == np.uint8:
        return tuple(items)
    raise InvalidInputError(
        f"{name} must be a feature matrix (rows, features), strings, or uint8 pictures "
        f"(n, height, width[, channels]); got shape {items.shape} of {items.dtype}"
    )


def pick_items(items: Items, rows: IntArray) -> Items:
    """Return the given rows of a matrix (copied), a tuple (copied) or a lazy sequence (still lazy)."""
    if isinstance(items, np.ndarray):
        return items[rows]
    if isinstance(items, tuple):
        return tuple(items[row] for row in rows.tolist())
    return SelectedItems(items, rows)


def read_only(array: AnyArray) -> AnyArray:
    """Return a view of ``array`` that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view
