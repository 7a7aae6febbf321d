"""Graphs of near rows, as lists of edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array

from diptych.arrays import BoolArray, FloatArray, IntArray, row_blocks

# Bytes of a block of distances.
_BLOCK_BYTES = 64 * 2**20


def nearest_of_class(rows: FloatArray, belongs: BoolArray, count: int) -> IntArray:
    """Return the edges (i, j), i < j, where j is among the ``count`` nearest rows of a class of i, or the reverse."""
    edges = [np.zeros((0, 2), dtype=np.int64)]
    for members in belongs.T:
        own = np.flatnonzero(members)
        wanted = min(count, len(own) - 1)
        if wanted < 1:
            continue
        inside = rows[own]
        for block, distances in _distance_blocks(inside, inside):
            places = np.arange(block.start, block.stop)
            distances[places - block.start, places] = np.inf
            near = np.argpartition(distances, wanted - 1, axis=1)[:, :wanted]
            edges.append(np.stack([np.repeat(own[places], wanted), own[near.ravel()]], axis=1))
    return _distinct(np.concatenate(edges))


def nearest_of_others(rows: FloatArray, belongs: BoolArray, count: int, *, per_class: bool = False) -> IntArray:
    """Return the ``count`` closest pairs (i, j), i < j, of rows without a common label, overall or for each class."""
    groups = [np.flatnonzero(members) for members in belongs.T] if per_class else [np.arange(len(rows))]
    labels = belongs.astype(np.float32)
    return _distinct(np.concatenate([_closest_pairs(rows, labels, own, count) for own in groups if len(own)]))


def laplacian_moment(rows: FloatArray, edges: IntArray) -> FloatArray:
    """Return Xᵀ(D − W)X = Σ over edges of (x_i − x_j)(x_i − x_j)ᵀ."""
    n_rows = len(rows)
    ones = np.ones(len(edges), dtype=rows.dtype)
    half = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n_rows, n_rows)).tocsr()
    weights = half + half.T
    degrees = np.asarray(weights.sum(axis=1)).ravel()
    moment = (rows * degrees[:, None]).T @ rows - rows.T @ (weights @ rows)
    return np.asarray(moment + moment.T, dtype=np.float64) / 2


def _closest_pairs(rows: FloatArray, labels: FloatArray, own: IntArray, count: int) -> IntArray:
    """Return the closest pairs of a row of ``own`` and any other row, none of which shares a label with the other."""
    best, pairs = np.zeros(0), np.zeros((0, 2), dtype=np.int64)
    for block, distances in _distance_blocks(rows[own], rows):
        first = own[block]
        distances[labels[first] @ labels.T > 0] = np.inf
        # Each pair once where both of its rows are asked.
        asked_too = np.isin(np.arange(len(rows)), own, assume_unique=True)
        distances[asked_too[None, :] & (np.arange(len(rows))[None, :] <= first[:, None])] = np.inf
        near = distances < (best[-1] if len(best) >= count else np.inf)
        if np.count_nonzero(near) > count:
            limit = np.partition(distances[near], count - 1)[count - 1]
            near &= distances <= limit
        found, others = np.nonzero(near)
        best = np.concatenate([best, distances[found, others]])
        pairs = np.concatenate([pairs, np.stack([first[found], others], axis=1)])
        order = np.argsort(best, kind="stable")[:count]
        best, pairs = best[order], pairs[order]
    return pairs


def _distance_blocks(asked: FloatArray, kept: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield squared distances of some rows to all that are kept, block by block."""
    norms = np.einsum("ij,ij->i", kept, kept)
    for block in row_blocks(len(asked), max(1, _BLOCK_BYTES // (kept.itemsize * max(1, len(kept))))):
        part = asked[block]
        yield block, np.einsum("ij,ij->i", part, part)[:, None] + norms[None, :] - 2 * (part @ kept.T)


def _distinct(edges: IntArray) -> IntArray:
    return np.unique(np.sort(edges, axis=1), axis=0)
