"""The nearest rows of a table, found block by block."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, IntArray, row_blocks

# Bytes of a block of approximate distances, and numbers in a block of differences.
_BLOCK_BYTES = 1 << 27
_BLOCK_NUMBERS = 1 << 23
# Candidates beyond those asked for, among which rounding may have changed the order.
_SPARE = 16


def nearest_rows(asked: FloatArray, kept: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Return the ``count`` rows of ``kept`` nearest to each row of ``asked``, and their Euclidean distances.

    ‖x‖² + ‖y‖² − 2⟨x, y⟩ finds candidates at the speed of a matrix product, but cancels; the distances of the
    candidates are then taken from their differences. The nearest come first, of equals the earlier.

    >>> import numpy as np
    >>> from diptych.models.clicks.nearest_rows import nearest_rows
    >>> rows, distances = nearest_rows(np.array([[0.0]]), np.array([[5.0], [1.0], [3.0]]), 2)
    >>> rows.tolist(), distances.tolist()
    ([[1, 2]], [[1.0, 3.0]])
    """
    kept = kept.astype(np.float32, copy=False)
    asked = asked.astype(np.float32, copy=False)
    count = min(count, len(kept))
    halves = np.einsum("ij,ij->i", kept, kept) / 2
    rows = np.empty((len(asked), count), dtype=np.int32)
    distances = np.empty((len(asked), count), dtype=np.float32)
    for block in row_blocks(len(asked), _BLOCK_BYTES // (4 * len(kept))):
        candidates = _candidates(asked[block], kept, halves, min(count + _SPARE, len(kept)))
        rows[block], distances[block] = _ordered(asked[block], kept, candidates, count)
    return rows, distances


def _candidates(asked: FloatArray, kept: FloatArray, halves: FloatArray, count: int) -> IntArray:
    # Half the squared distance, less the part that is the same for all candidates of one row.
    gaps = asked @ kept.T
    np.subtract(halves, gaps, out=gaps)
    return np.sort(np.argpartition(gaps, count - 1, axis=1)[:, :count], axis=1)


def _ordered(asked: FloatArray, kept: FloatArray, candidates: IntArray, count: int) -> tuple[IntArray, FloatArray]:
    gaps = np.empty(candidates.shape, dtype=np.float32)
    for block in row_blocks(len(asked), _BLOCK_NUMBERS // (candidates.shape[1] * asked.shape[1])):
        differences = kept[candidates[block]] - asked[block, None, :]
        gaps[block] = np.linalg.norm(differences, axis=2)
    order = np.argsort(gaps, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(candidates, order, axis=1), np.take_along_axis(gaps, order, axis=1)
