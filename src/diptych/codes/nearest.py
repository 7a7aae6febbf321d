"""The exact nearest hash codes, and all within a radius, by the kernels of faiss or by NumPy alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, BoolArray, IntArray, row_blocks
from diptych.codes.distances import (
    CHUNK,
    as_allowed_mask,
    as_codes,
    as_machine_words,
    distance_type,
    fill_distances,
    in_parallel,
    smallest,
    thread_count,
)
from diptych.errors import InvalidInputError, MissingPackageError

_FIRST_CHUNK = 1 << 12
# From about this k on, counting (one list per distance) is faster than a heap.
_LARGE_HEAP = 200
_COUNTER_BYTES = 1 << 26
# Loading the library takes longer than a smaller search.
_SMALL_WORK = 1 << 22
# NumPy counts the bits of single bytes in less time than it takes for four.
_SHORT_CODE_BYTES = 1
DistancesAndPositions = tuple[NDArray[np.int32], NDArray[np.int64]]
# Waking threads takes longer than less than this.
_SHARED_WORK = 1 << 18
_PARTS_PER_THREAD = 2
_GATHERED_ROWS = 1 << 18
_QUERY_ROWS = 1 << 10


def nearest_by_counting(queries: NDArray[np.uint8], gallery: NDArray[np.uint8], k: int) -> DistancesAndPositions:
    """Return distances and positions of the ``k`` nearest rows, at most as many as there are, ties by position.

    The gallery passes in chunks that stay in the processor's cache. Once k are known, a chunk in which nothing is
    nearer than the farthest of them costs one look at its minimum.
    """
    query_words, gallery_words = as_machine_words(queries), as_machine_words(gallery)
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
) -> list[DistancesAndPositions]:
    """Return distances and positions of all rows within ``radius`` of each query, in order of position."""
    query_words, gallery_words = as_machine_words(queries), as_machine_words(gallery)
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


def faiss_is_worthwhile(comparisons: int) -> bool:
    """Whether so many comparisons should be left to faiss: it is loaded, or is installed and would take less time."""
    if sys.modules.get("faiss") is not None:
        return True
    return comparisons >= _SMALL_WORK and find_spec("faiss") is not None


def faiss_package() -> Any:
    """Return the module, or say how to install it."""
    try:
        import faiss
    except ImportError:
        raise MissingPackageError("approximate search", "'diptych[search]'") from None
    return faiss


@contextmanager
def faiss_threads(number: int) -> Iterator[None]:
    """Let calls of faiss from this thread use ``number`` threads; every calling thread has a number of its own."""
    faiss = faiss_package()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(number)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def nearest_by_faiss(queries: NDArray[np.uint8], gallery: NDArray[np.uint8], k: int) -> DistancesAndPositions:
    """Return distances and positions of the ``k`` nearest rows, on the calling thread, ties by position.

    Both the heap and the counters of faiss order by distance and position, and its kernels read plain arrays, so
    nothing is copied into an index. Douze et al., "The Faiss library", 2024.
    """
    faiss = faiss_package()
    k = min(k, len(gallery))
    if gallery.shape[1] == 2:
        # It has kernels for four bytes and more.
        queries, gallery = (
            np.ascontiguousarray(codes).view(np.uint16).astype(np.uint32).view(np.uint8) for codes in (queries, gallery)
        )
    with faiss_threads(1):
        if k < _LARGE_HEAP:
            found: tuple[Any, Any] = faiss.knn_hamming(queries, gallery, k)
            return found
        # A query's counters hold up to k positions for each distance.
        batch = _COUNTER_BYTES // (8 * k * (8 * gallery.shape[1] + 1))
        parts = [faiss.knn_hamming(queries[rows], gallery, k, variant="mc") for rows in row_blocks(len(queries), batch)]
    return np.concatenate([distances for distances, _ in parts]), np.concatenate([places for _, places in parts])


def nearest_codes(
    queries: AnyArray, gallery: AnyArray, k: int, *, allowed: BoolArray | None = None, threads: int | None = None
) -> DistancesAndPositions:
    """Return distances and positions of the ``k`` nearest codes of the gallery for every query, exactly.

    Rows are in order of distance, equal distances in order of position, and have min(k, number of codes) columns.
    ``allowed`` marks the positions that may be answered. The work is shared among ``threads`` (None: every processor),
    by queries or, when these are few, by parts of the gallery. The kernels are those of faiss where it is installed and
    codes are longer than 8 bits, else NumPy's; answers are the same. Use ``CodeIndex`` for a gallery that changes or
    need not be searched exactly.

    >>> import numpy as np
    >>> from diptych.codes import nearest_codes
    >>> gallery = np.array([[0b1111], [0b0011], [0b0001], [0b1100]], dtype=np.uint8)
    >>> distances, positions = nearest_codes(np.array([[0b0011]], dtype=np.uint8), gallery, 3)
    >>> distances, positions
    (array([[0, 1, 2]], dtype=int32), array([[1, 2, 0]]))
    """
    queries = as_codes(queries, name="queries")
    gallery = as_codes(gallery, name="gallery", width=queries.shape[1])
    if k < 1:
        raise InvalidInputError(f"k must be at least 1, got {k}")
    places = _allowed_places(allowed, len(gallery))
    n_places = len(gallery) if places is None else len(places)
    if not len(queries) or not n_places:
        shape = (len(queries), min(k, n_places))
        return np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int64)
    comparisons = len(queries) * n_places
    is_short = gallery.shape[1] <= _SHORT_CODE_BYTES
    kernel = nearest_by_counting if is_short or not faiss_is_worthwhile(comparisons) else nearest_by_faiss
    workers = thread_count(threads) if comparisons >= _SHARED_WORK else 1

    def search(task: tuple[slice, slice]) -> DistancesAndPositions:
        asked, searched = task
        codes = gallery[searched] if places is None else gallery[places[searched]]
        distances, rows = kernel(queries[asked], codes, k)
        return distances, rows + searched.start if places is None else places[rows + searched.start]

    # Few queries: more parts than threads, so that a thread that falls behind holds up a small one.
    shares = -(-n_places // (_PARTS_PER_THREAD * workers)) if len(queries) < workers else n_places
    gallery_parts = list(row_blocks(n_places, shares if places is None else min(shares, _GATHERED_ROWS)))
    query_parts = list(row_blocks(len(queries), min(_QUERY_ROWS, -(-len(queries) // workers))))
    found = in_parallel(search, [(asked, part) for asked in query_parts for part in gallery_parts], workers)
    width = len(gallery_parts)
    merged = [merge_nearest(found[first : first + width], k) for first in range(0, len(found), width)]
    return np.concatenate([near for near, _ in merged]), np.concatenate([rows for _, rows in merged])


def codes_within(
    queries: AnyArray, gallery: AnyArray, radius: int, *, allowed: BoolArray | None = None, threads: int | None = None
) -> list[DistancesAndPositions]:
    """Return, for every query, distances and positions of all codes that differ in at most ``radius`` bits.

    Each answer is in order of distance, equal distances in order of position.

    >>> import numpy as np
    >>> from diptych.codes import codes_within
    >>> gallery = np.array([[0b1111], [0b0011], [0b0001], [0b1100]], dtype=np.uint8)
    >>> codes_within(np.array([[0b0011]], dtype=np.uint8), gallery, 1)
    [(array([0, 1], dtype=int32), array([1, 2]))]
    """
    queries = as_codes(queries, name="queries")
    gallery = as_codes(gallery, name="gallery", width=queries.shape[1])
    if radius < 0:
        raise InvalidInputError(f"radius must be at least 0, got {radius}")
    places = _allowed_places(allowed, len(gallery))
    n_places = len(gallery) if places is None else len(places)

    def search(rows: slice) -> list[DistancesAndPositions]:
        codes = gallery[rows] if places is None else gallery[places[rows]]
        return within_by_counting(queries, codes, radius)

    parts = list(row_blocks(n_places, _GATHERED_ROWS))
    found = in_parallel(search, parts, thread_count(threads)) if parts else []
    answers = []
    for query in range(len(queries)):
        near = np.concatenate([np.empty(0, dtype=np.int32), *(part[query][0] for part in found)])
        starts = [part[query][1] + rows.start for rows, part in zip(parts, found, strict=True)]
        spots = np.concatenate([np.empty(0, dtype=np.int64), *starts])
        order = np.argsort(near, kind="stable")
        answers.append((near[order], spots[order] if places is None else places[spots[order]]))
    return answers


def merge_nearest(parts: Sequence[DistancesAndPositions], k: int) -> DistancesAndPositions:
    """Return the ``k`` nearest of answers about successive parts of a gallery; earlier parts win ties."""
    if len(parts) == 1:
        return parts[0]
    distances = np.concatenate([part for part, _ in parts], axis=1)
    positions = np.concatenate([part for _, part in parts], axis=1)
    order: Any = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(positions, order, axis=1)


def _allowed_places(allowed: BoolArray | None, n_items: int) -> IntArray | None:
    """Return the positions that ``allowed`` marks, None when these are all."""
    if allowed is None:
        return None
    allowed = as_allowed_mask(allowed, n_items)
    return None if allowed.all() else np.flatnonzero(allowed)
