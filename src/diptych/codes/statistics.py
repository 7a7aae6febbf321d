"""Measure whether hash codes use their bits: balance, correlation, entropy, distinct codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray, IntArray, row_blocks
from diptych.codes.distances import as_codes, unpack_signs
from diptych.errors import InvalidInputError

# Sums of this many ±1 are whole numbers that float32 holds exactly.
BLOCK_ROWS = 1 << 16


@dataclass(frozen=True)
class CodeStatistics:
    """Whether codes use their bits.

    ``distinct``
        number of different codes, and ``largest_group`` the number of items that share the commonest one.
    ``bit_balance``
        mean share of ones; ``worst_balance`` is the largest distance of one bit's share from ½ (0: balanced, ½: a bit
        that never changes, of which there are ``constant_bits``).
    ``mean_abs_correlation``
        mean |Pearson correlation| of two different bits that change, 0 when there are fewer than two such bits.
    ``bit_entropy``
        mean entropy of a bit, at most 1.
    ``code_entropy``
        entropy in bits of the distribution of whole codes, at most log₂ of the number of items.
    ``bytes_per_item``
        what a packed code occupies.

    Balanced and uncorrelated bits are what Weiss et al. ("Spectral hashing", NIPS 2008) ask of good codes.
    """

    n_items: int
    n_bits: int
    distinct: int
    largest_group: int
    bit_balance: float
    worst_balance: float
    constant_bits: int
    mean_abs_correlation: float
    bit_entropy: float
    code_entropy: float
    bytes_per_item: int


def code_statistics(codes: AnyArray, n_bits: int) -> CodeStatistics:
    """Describe packed codes of ``n_bits`` bits.

    >>> import numpy as np
    >>> from diptych.codes import code_statistics
    >>> found = code_statistics(np.array([[0b11000000], [0b00000000], [0b11000000], [0b00000000]], dtype=np.uint8), 2)
    >>> found.distinct, found.bit_balance, found.mean_abs_correlation, found.code_entropy
    (2, 0.5, 1.0, 1.0)
    """
    codes = as_codes(codes)
    if not len(codes):
        raise InvalidInputError("there are no codes to describe")
    if -(-n_bits // 8) != codes.shape[1]:
        raise InvalidInputError(f"codes of {n_bits} bits have {-(-n_bits // 8)} bytes, not {codes.shape[1]}")
    sums, products = _moments(codes, n_bits)
    shares = (1 + sums / len(codes)) / 2
    groups: IntArray = np.unique(codes, axis=0, return_counts=True)[1]
    return CodeStatistics(
        n_items=len(codes),
        n_bits=n_bits,
        distinct=len(groups),
        largest_group=int(groups.max()),
        bit_balance=float(shares.mean()),
        worst_balance=float(np.abs(shares - 0.5).max()),
        constant_bits=int(np.count_nonzero((shares == 0) | (shares == 1))),
        mean_abs_correlation=_mean_correlation(sums, products, len(codes)),
        bit_entropy=float((_information(shares) + _information(1 - shares)).mean()),
        code_entropy=float(_information(groups / len(codes)).sum()),
        bytes_per_item=codes.shape[1],
    )


def _moments(codes: NDArray[np.uint8], n_bits: int) -> tuple[FloatArray, FloatArray]:
    """Return the sums of the bits as ±1 and of their products."""
    sums, products = np.zeros(n_bits), np.zeros((n_bits, n_bits))
    for rows in row_blocks(len(codes), BLOCK_ROWS):
        signs = unpack_signs(codes[rows], n_bits)
        sums += signs.sum(axis=0)
        products += signs.T @ signs
    return sums, products


def _mean_correlation(sums: FloatArray, products: FloatArray, n_items: int) -> float:
    # n²·covariance in whole numbers, so that a constant bit is exactly zero.
    covariances = n_items * products - np.outer(sums, sums)
    changing = np.flatnonzero(np.diagonal(covariances) > 0)
    if len(changing) < 2:
        return 0.0
    deviations = np.sqrt(np.diagonal(covariances)[changing])
    correlations = np.abs(covariances[np.ix_(changing, changing)]) / np.outer(deviations, deviations)
    pairs = np.triu_indices(len(changing), k=1)
    return float(correlations[pairs].mean())


def _information(shares: FloatArray) -> FloatArray:
    return np.asarray(-shares * np.log2(np.where(shares > 0, shares, 1.0)))
