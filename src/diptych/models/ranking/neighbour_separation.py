"""The listwise term: right neighbours close, wrong ones further away."""

from __future__ import annotations

import numpy as np

from diptych.arrays import BoolArray, FloatArray


def neighbour_separation(
    queries: FloatArray, items: FloatArray, relevant: BoolArray, *, n_neighbors: int, margin: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return the mean of [τ + mean d²(right neighbours) − mean d²(wrong neighbours)]₊ and its slopes at both sides.

    Neighbours are the ``n_neighbors`` nearest items of either kind, or as many as there are; d is the Euclidean
    distance. A query without items of one kind costs nothing.

    >>> import numpy as np
    >>> from diptych.models.ranking.neighbour_separation import neighbour_separation
    >>> items = np.array([[1.0], [2.0]])
    >>> neighbour_separation(np.array([[0.0]]), items, np.array([[True, False]]), n_neighbors=1, margin=4.0)[0]
    1.0
    """
    squares = (queries**2).sum(axis=1)[:, None] + (items**2).sum(axis=1) - 2 * queries @ items.T
    shares = _nearest(squares, relevant, n_neighbors) - _nearest(squares, ~relevant, n_neighbors)
    gaps = margin + (shares * squares).sum(axis=1)
    both = relevant.any(axis=1) & ~relevant.all(axis=1)
    active = both & (gaps > 0)
    # Each of the shares acts along 2(q − y); those of a query sum to zero, so that its own place drops out.
    pulls = np.where(active[:, None], shares, 0) * (2 / len(queries))
    item_slopes = pulls.sum(axis=0)[:, None] * items - pulls.T @ queries
    return float(gaps[active].sum()) / len(queries), np.asarray(-pulls @ items), np.asarray(item_slopes)


def _nearest(squares: FloatArray, counted: BoolArray, n_neighbors: int) -> FloatArray:
    """Return 1/k for the k nearest counted items of each row, 0 for the others."""
    first = min(n_neighbors, squares.shape[1])
    places = np.argpartition(np.where(counted, squares, np.inf), first - 1, axis=1)[:, :first]
    chosen = np.zeros_like(counted)
    np.put_along_axis(chosen, places, True, axis=1)
    # Where fewer are counted than asked for, others fill the places.
    chosen &= counted
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1), dtype=squares.dtype)
