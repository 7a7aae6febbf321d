"""The nearest codes with the kernels of faiss, on codes that stay where they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import row_blocks
from diptych.errors import MissingPackageError

# From about this k on, counting (one list per distance) is faster than a heap.
_LARGE_HEAP = 200
_COUNTER_BYTES = 1 << 26
# Loading the library takes longer than a smaller search.
_SMALL_WORK = 1 << 22


def is_worthwhile(comparisons: int) -> bool:
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


def nearest_by_faiss(
    queries: NDArray[np.uint8], gallery: NDArray[np.uint8], k: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return distances and positions of the ``k`` nearest rows, on the calling thread, ties by position.

    Both the heap and the counters of faiss order by distance and position, and its kernels read plain arrays, so
    nothing is copied into an index. Douze et al., "The Faiss library", 2024.
    """
    faiss = faiss_package()
    k = min(k, len(gallery))
    with faiss_threads(1):
        if k < _LARGE_HEAP:
            found: tuple[Any, Any] = faiss.knn_hamming(queries, gallery, k)
            return found
        # A query's counters hold up to k positions for each distance.
        batch = _COUNTER_BYTES // (8 * k * (8 * gallery.shape[1] + 1))
        parts = [faiss.knn_hamming(queries[rows], gallery, k, variant="mc") for rows in row_blocks(len(queries), batch)]
    return np.concatenate([distances for distances, _ in parts]), np.concatenate([places for _, places in parts])
