"""The exact nearest hash codes, and all within a radius: by faiss where it is installed, else by NumPy."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, BoolArray, IntArray, row_blocks
from diptych.codes.distances import as_allowed_mask, as_codes, hamming_distances
from diptych.errors import InvalidInputError, MissingPackageError

DistancesAndPositions = tuple[NDArray[np.int32], NDArray[np.int64]]

# Fewer comparisons take less time than loading faiss, where nothing has loaded it yet.
MIN_COMPARISONS_OF_FAISS = 1 << 22
# The kernels of faiss are made for codes of four bytes and more, and its heap for a small k.
MIN_BYTES_OF_FAISS = 4
MAX_K_OF_FAISS = 200
# NumPy compares so many pairs of codes at a time.
BLOCK_PAIRS = 1 << 20


def faiss_package() -> Any:
    """Return the module, or say how to install it."""
    try:
        import faiss
    except ImportError:
        raise MissingPackageError("approximate search", "'diptych[search]'") from None
    return faiss


def nearest_codes(
    queries: AnyArray, gallery: AnyArray, k: int, *, allowed: BoolArray | None = None
) -> DistancesAndPositions:
    """Return distances and positions of the ``k`` nearest codes of the gallery for every query, exactly.

    Rows are in order of distance, equal distances in order of position, and have min(k, number of codes) columns.
    ``allowed`` marks the positions that may be answered. faiss does the work where it is installed and the work is
    large, else NumPy; answers are the same.

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
    if places is not None:
        gallery = gallery[places]
    k = min(k, len(gallery))
    if not len(queries) or not k:
        return np.empty((len(queries), k), dtype=np.int32), np.empty((len(queries), k), dtype=np.int64)
    is_large = "faiss" in sys.modules or len(queries) * len(gallery) >= MIN_COMPARISONS_OF_FAISS
    suits_faiss = k <= MAX_K_OF_FAISS and gallery.shape[1] >= MIN_BYTES_OF_FAISS
    if is_large and suits_faiss and find_spec("faiss") is not None:
        distances, positions = faiss_package().knn_hamming(queries, gallery, k)
    else:
        distances, positions = nearest_by_numpy(queries, gallery, k)
    return distances, positions if places is None else places[positions]


def nearest_by_numpy(queries: NDArray[np.uint8], gallery: NDArray[np.uint8], k: int) -> DistancesAndPositions:
    """Return what ``nearest_codes`` does for checked codes and ``k`` of at most their number.

    A distance and a position make one number, so that the smallest numbers are the answer, ties included.
    """
    n_codes = len(gallery)
    nearest = np.empty((len(queries), k), dtype=np.int64)
    for rows in row_blocks(len(queries), max(1, BLOCK_PAIRS // n_codes)):
        best = np.empty((rows.stop - rows.start, 0), dtype=np.int64)
        for part in row_blocks(n_codes, BLOCK_PAIRS):
            distances = hamming_distances(queries[rows], gallery[part]).astype(np.int64)
            found = distances * n_codes + np.arange(part.start, part.stop)
            if k < found.shape[1]:
                found = np.partition(found, k - 1, axis=1)[:, :k]
            best = np.sort(np.concatenate([best, found], axis=1), axis=1)[:, :k]
        nearest[rows] = best
    return (nearest // n_codes).astype(np.int32), nearest % n_codes


def codes_within(
    queries: AnyArray, gallery: AnyArray, radius: int, *, allowed: BoolArray | None = None
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
    if places is not None:
        gallery = gallery[places]
    answers: list[DistancesAndPositions] = []
    for row in range(len(queries)):
        distances = hamming_distances(queries[row : row + 1], gallery)[0]
        inside = np.flatnonzero(distances <= radius)
        inside = inside[np.argsort(distances[inside], kind="stable")]
        positions: IntArray = inside if places is None else places[inside]
        answers.append((distances[inside].astype(np.int32), positions.astype(np.int64)))
    return answers


def _allowed_places(allowed: BoolArray | None, n_items: int) -> IntArray | None:
    """Return the positions that ``allowed`` marks, None when these are all."""
    if allowed is None:
        return None
    allowed = as_allowed_mask(allowed, n_items)
    return None if allowed.all() else np.flatnonzero(allowed)
