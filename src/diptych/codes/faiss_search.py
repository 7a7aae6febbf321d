"""The nearest codes with the kernels of faiss, on codes that stay where they are."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray


def has_faiss() -> bool:
    """Whether faiss is installed; it is not imported."""
    return "faiss" in sys.modules or find_spec("faiss") is not None


def nearest_by_faiss(
    queries: NDArray[np.uint8], gallery: NDArray[np.uint8], k: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return distances and positions of the ``k`` nearest rows, on the calling thread, ties by position.

    The heap of faiss orders by distance and position, and its kernels read plain arrays, so nothing is copied into an
    index. Douze et al., "The Faiss library", 2024.
    """
    import faiss

    k = min(k, len(gallery))
    threads = faiss.omp_get_max_threads()
    # The number is kept by each calling thread for itself, so this does not slow down other users of faiss.
    faiss.omp_set_num_threads(1)
    try:
        found: tuple[Any, Any] = faiss.knn_hamming(queries, gallery, k)
    finally:
        faiss.omp_set_num_threads(threads)
    return found
