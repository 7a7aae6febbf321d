"""Sparse codes of rows over a dictionary."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, row_blocks

# A block of codes, its momentum and its gradient stay in cache.
_BLOCK_NUMBERS = 1 << 17


def sparse_codes(
    rows: FloatArray, atoms: FloatArray, ratio: float, n_iter: int, start: FloatArray | None = None
) -> FloatArray:
    """Return the codes s of every row x: argmin ½‖x − sD‖² + ratio·‖Dx‖_∞·‖s‖₁, where the rows of D are ``atoms``.

    The penalty is relative to the smallest one that gives the empty code, row by row, so that the length of a row does
    not matter. Accelerated gradient steps (FISTA) with a restart wherever momentum points uphill, each row on its own
    and for a fixed number of steps: a row's code does not depend on the rows beside it. A row of zeros has the zero
    code.
    """
    codes = np.zeros((len(rows), len(atoms)), dtype=rows.dtype) if start is None else start.copy()
    dictionary = atoms.astype(rows.dtype, copy=False)
    curvature = max(float(np.linalg.norm(dictionary, 2)) ** 2, float(np.finfo(rows.dtype).tiny))
    for block in row_blocks(len(rows), _BLOCK_NUMBERS // len(atoms)):
        codes[block] = _descend(rows[block], dictionary, ratio, 1 / curvature, n_iter, codes[block])
    return codes


def optimality_gap(rows: FloatArray, atoms: FloatArray, ratio: float, codes: FloatArray) -> float:
    """Return the largest violation of the optimality conditions of `sparse_codes`, relative to each row's ‖Dx‖_∞.

    At the optimum the correlations c = D(x − sD) are penalty·sgn(s) where s is not zero, and at most the penalty in
    size elsewhere.
    """
    largest = np.abs(rows @ atoms.T).max(axis=1, keepdims=True)
    correlations = (rows - codes @ atoms) @ atoms.T
    penalty = ratio * largest
    used = np.abs(correlations - penalty * np.sign(codes))
    unused = np.maximum(np.abs(correlations) - penalty, 0)
    gaps = np.where(codes != 0, used, unused) / np.where(largest > 0, largest, 1)
    return float(gaps.max())


def _descend(
    rows: FloatArray, atoms: FloatArray, ratio: float, step: float, n_iter: int, codes: FloatArray
) -> FloatArray:
    threshold = step * ratio * np.abs(rows @ atoms.T).max(axis=1, keepdims=True)
    pace: FloatArray = np.ones((len(rows), 1), dtype=rows.dtype)
    ahead = codes
    for _ in range(n_iter):
        moved = ahead + ((rows - ahead @ atoms) @ atoms.T) * rows.dtype.type(step)
        fresh = moved - np.clip(moved, -threshold, threshold)
        change = fresh - codes
        uphill = np.einsum("ij,ij->i", ahead - fresh, change)[:, None] > 0
        next_pace = np.where(uphill, 1, (1 + np.sqrt(1 + 4 * pace**2)) / 2).astype(rows.dtype)
        ahead = fresh + np.where(uphill, 0, (pace - 1) / next_pace) * change
        codes, pace = fresh, next_pace
    return codes
