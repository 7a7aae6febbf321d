"""The exact nearest codes, and all codes within a radius."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, BoolArray, IntArray, row_blocks
from diptych.codes.counting_search import nearest_by_counting, within_by_counting
from diptych.codes.faiss_search import is_worthwhile, nearest_by_faiss
from diptych.codes.parallel import in_parallel, thread_count
from diptych.codes.words import as_codes, as_marks
from diptych.errors import InvalidInputError

Found = tuple[NDArray[np.int32], NDArray[np.int64]]

# Waking threads takes longer than less than this.
_SHARED_WORK = 1 << 18
_PARTS_PER_THREAD = 2
_GATHERED_ROWS = 1 << 18
_QUERY_ROWS = 1 << 10


def nearest_codes(
    queries: AnyArray, gallery: AnyArray, k: int, *, allowed: BoolArray | None = None, threads: int | None = None
) -> Found:
    """Return distances and positions of the ``k`` nearest codes of the gallery for every query, exactly.

    Rows are in order of distance, equal distances in order of position, and have min(k, number of codes) columns.
    ``allowed`` marks the positions that may be answered. The work is shared among ``threads`` (None: every processor),
    by queries or, when these are few, by parts of the gallery. The kernels are those of faiss where it is installed,
    else NumPy's; answers are the same. Use ``CodeIndex`` for a gallery that changes or need not be searched exactly.

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
    kernel = nearest_by_faiss if is_worthwhile(comparisons) else nearest_by_counting
    workers = thread_count(threads) if comparisons >= _SHARED_WORK else 1

    def search(task: tuple[slice, slice]) -> Found:
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
) -> list[Found]:
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

    def search(rows: slice) -> list[Found]:
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


def merge_nearest(parts: Sequence[Found], k: int) -> Found:
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
    allowed = as_marks(allowed, n_items)
    return None if allowed.all() else np.flatnonzero(allowed)
