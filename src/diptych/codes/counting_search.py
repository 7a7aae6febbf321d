"""The nearest codes with NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import row_blocks
from diptych.codes.distances import CHUNK, fill_distances
from diptych.codes.small_counts import smallest
from diptych.codes.words import as_words, distance_type

_FIRST_CHUNK = 1 << 12


def nearest_by_counting(
    queries: NDArray[np.uint8], gallery: NDArray[np.uint8], k: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return distances and positions of the ``k`` nearest rows, at most as many as there are, ties by position.

    The gallery passes in chunks that stay in the processor's cache. Once k are known, a chunk in which nothing is
    nearer than the farthest of them costs one look at its minimum.
    """
    query_words, gallery_words = as_words(queries), as_words(gallery)
    scratch = np.empty(min(CHUNK, len(gallery)), dtype=gallery_words.dtype)
    distances = np.empty(len(scratch), dtype=distance_type(gallery.shape[1]))
    found = [_nearest_of_one(words, gallery_words, k, scratch, distances) for words in query_words]
    return (
        np.array([nearest for nearest, _ in found], dtype=np.int32).reshape(len(queries), -1),
        np.array([positions for _, positions in found], dtype=np.int64).reshape(len(queries), -1),
    )


def _nearest_of_one(
    query: NDArray[Any], gallery: NDArray[Any], k: int, scratch: NDArray[Any], distances: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    nearest, positions = distances[:0], np.empty(0, dtype=np.int64)
    start, step = 0, _FIRST_CHUNK
    while start < len(gallery):
        part = gallery[start : start + step]
        here = distances[: len(part)]
        fill_distances(query, part, here, scratch[: len(part)])
        # An equal distance further on loses the tie, so only what is strictly nearer can enter.
        full = len(nearest) == k
        if not full or here.min() < nearest[-1]:
            entering = np.flatnonzero(here < nearest[-1]) if full else np.arange(len(here))
            values = np.concatenate([nearest, here[entering]])
            kept = smallest(values, k)
            nearest, positions = values[kept], np.concatenate([positions, entering + start])[kept]
        start, step = start + len(part), len(scratch)
    return nearest, positions


def within_by_counting(
    queries: NDArray[np.uint8], gallery: NDArray[np.uint8], radius: int
) -> list[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """Return distances and positions of all rows within ``radius`` of each query, in order of position."""
    query_words, gallery_words = as_words(queries), as_words(gallery)
    scratch = np.empty(min(CHUNK, len(gallery)), dtype=gallery_words.dtype)
    distances = np.empty(len(gallery), dtype=distance_type(gallery.shape[1]))
    found = []
    for words in query_words:
        for rows in row_blocks(len(gallery), CHUNK):
            part = gallery_words[rows]
            fill_distances(words, part, distances[rows], scratch[: len(part)])
        places = np.flatnonzero(distances <= radius)
        found.append((distances[places].astype(np.int32), places))
    return found
