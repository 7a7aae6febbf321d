"""How alike two sets of features see the same items: debiased kernel alignment and mutual nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.errors import InvalidInputError

N_BLOCKS = 10
_BLOCK_ROWS = 512


def debiased_cka(a: ArrayLike, b: ArrayLike) -> float:
    """Return the linear kernel alignment (CKA) of two feature matrices of the same items, without its bias.

    With K = AAᵀ and L = BBᵀ, both without their diagonals, and

        h(K, L) = [Σ K∘L + 1ᵀK1 · 1ᵀL1 / ((n−1)(n−2)) − 2 · 1ᵀKL1 / (n−2)] / (n(n−3))

    it is h(K, L) / √(h(K, K) h(L, L)): 1 where one side is the other turned, scaled and moved, and 0 in the mean where
    they have nothing in common. The usual estimate is near 1 for any features wider than there are items. No n × n
    matrix is made. Song et al., "Feature selection via dependence maximization", JMLR 2012; Kornblith et al.,
    "Similarity of neural network representations revisited", ICML 2019.

    >>> import numpy as np
    >>> from diptych.metrics import debiased_cka
    >>> rows = np.random.default_rng(0).normal(size=(50, 4))
    >>> round(debiased_cka(rows, 3 * rows[:, ::-1] + 1), 6)
    1.0
    """
    first, second = _same_items(a, b, least=4)
    own = _dependence(first, first) * _dependence(second, second)
    return _dependence(first, second) / float(np.sqrt(own)) if own > 0 else 0.0


def _dependence(a: FloatArray, b: FloatArray) -> float:
    n = len(a)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    squares = np.einsum("ij,ij->i", a, a), np.einsum("ij,ij->i", b, b)
    sums = a @ a.sum(axis=0) - squares[0], b @ b.sum(axis=0) - squares[1]
    both = float(((a.T @ b) ** 2).sum()) - float(squares[0] @ squares[1])
    corrected = both + float(sums[0].sum() * sums[1].sum()) / ((n - 1) * (n - 2))
    corrected -= 2 * float(sums[0] @ sums[1]) / (n - 2)
    return corrected / (n * (n - 3))


def mutual_neighbours(a: ArrayLike, b: ArrayLike, n_nearest: int = 10) -> float:
    """Return the mean share of an item's nearest others that two feature matrices agree on; chance is k/(n − 1).

    Neighbours are those of largest cosine; of equal ones the earlier.

    >>> import numpy as np
    >>> from diptych.metrics import mutual_neighbours
    >>> rows = np.random.default_rng(0).normal(size=(50, 4))
    >>> mutual_neighbours(rows, 2 * rows)
    1.0
    """
    first, second = _same_items(a, b, least=2)
    count = min(n_nearest, len(first) - 1)
    unit = [side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in (first, second)]
    shared = 0
    for rows in row_blocks(len(first), _BLOCK_ROWS):
        near = [_nearest(side, rows, count) for side in unit]
        shared += sum(len(np.intersect1d(*both)) for both in zip(*near, strict=True))
    return shared / (count * len(first))


def _nearest(unit: FloatArray, rows: slice, count: int) -> IntArray:
    scores = unit[rows] @ unit.T
    scores[np.arange(len(scores)), np.arange(rows.start, rows.start + len(scores))] = -np.inf
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


@dataclass(frozen=True)
class Agreement:
    """A measure of two towers with its standard error.

    >>> from diptych.metrics import Agreement
    >>> str(Agreement(0.3141, 0.0159))
    '0.314 ± 0.016'
    """

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


def agreement(measure: Callable[[FloatArray, FloatArray], float], a: ArrayLike, b: ArrayLike) -> Agreement:
    """Return a measure of two feature matrices, and its standard error by leaving out a tenth of the items in turn.

    >>> import numpy as np
    >>> from diptych.metrics import agreement, debiased_cka
    >>> rows = np.random.default_rng(0).normal(size=(50, 4))
    >>> str(agreement(debiased_cka, rows, rows))
    '1.000 ± 0.000'
    """
    first, second = _same_items(a, b, least=2 * N_BLOCKS)
    blocks = np.arange(len(first)) % N_BLOCKS
    left_out = np.array([measure(first[blocks != block], second[blocks != block]) for block in range(N_BLOCKS)])
    error = np.sqrt((N_BLOCKS - 1) / N_BLOCKS * ((left_out - left_out.mean()) ** 2).sum())
    return Agreement(measure(first, second), float(error))


def _same_items(a: ArrayLike, b: ArrayLike, *, least: int) -> tuple[FloatArray, FloatArray]:
    first, second = (np.asarray(side, dtype=np.float64) for side in (a, b))
    if first.ndim != 2 or second.ndim != 2 or len(first) != len(second) or len(first) < least:
        raise InvalidInputError(
            f"a and b must be feature matrices of the same items, at least {least}, got {first.shape}, {second.shape}"
        )
    return first, second
