"""The exact nearest codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, row_blocks
from diptych.codes.counting_search import nearest_by_counting
from diptych.codes.faiss_search import has_faiss, nearest_by_faiss
from diptych.codes.parallel import in_parallel, thread_count
from diptych.codes.words import as_codes
from diptych.errors import InvalidInputError

Found = tuple[NDArray[np.int32], NDArray[np.int64]]

_SMALL_WORK = 1 << 20


def nearest_codes(queries: AnyArray, gallery: AnyArray, k: int, *, threads: int | None = None) -> Found:
    """Return distances and positions of the ``k`` nearest codes of the gallery for every query, exactly.

    Rows are in order of distance, equal distances in order of position, and have min(k, number of codes) columns. The
    work is shared among ``threads`` (None: every processor), by queries or, when these are few, by parts of the
    gallery. The kernels are those of faiss where it is installed, else NumPy's; answers are the same.

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
    if not len(queries) or not len(gallery):
        columns = min(k, len(gallery))
        return np.empty((len(queries), columns), np.int32), np.empty((len(queries), columns), np.int64)
    # Importing faiss takes longer than a small search.
    small = len(queries) * len(gallery) < _SMALL_WORK
    kernel = nearest_by_faiss if not small and has_faiss() else nearest_by_counting
    workers = 1 if small else thread_count(threads)
    gallery_parts = list(
        row_blocks(len(gallery), -(-len(gallery) // workers) if len(queries) < workers else len(gallery))
    )
    query_parts = list(row_blocks(len(queries), -(-len(queries) // workers)))
    tasks = [(asked, searched) for asked in query_parts for searched in gallery_parts]

    def search(task: tuple[slice, slice]) -> Found:
        asked, searched = task
        distances, positions = kernel(queries[asked], gallery[searched], k)
        return distances, positions + searched.start

    found = in_parallel(search, tasks, workers)
    width = len(gallery_parts)
    merged = [merge(found[first : first + width], k) for first in range(0, len(found), width)]
    return np.concatenate([distances for distances, _ in merged]), np.concatenate([places for _, places in merged])


def merge(parts: Sequence[Found], k: int) -> Found:
    """Return the ``k`` nearest of answers about successive parts of a gallery; earlier parts win ties."""
    if len(parts) == 1:
        return parts[0]
    distances = np.concatenate([part for part, _ in parts], axis=1)
    positions = np.concatenate([part for _, part in parts], axis=1)
    order: Any = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(positions, order, axis=1)
