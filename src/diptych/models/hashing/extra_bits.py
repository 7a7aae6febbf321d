"""Bits beyond the directions that a closed form has."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray

_NOISE = 1e-7


def mixed_directions(
    left: FloatArray, right: FloatArray, weights: FloatArray, n_bits: int, seed: int, kept: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return ``n_bits`` pairs of directions: the given ones, or the first ``kept``, then random mixtures of all.

    A mixture draws one normal number per given pair, times its weight, and uses the same ones on both sides: a random
    hyperplane of the weighted common space, so that bits on both sides go on agreeing. Every mixture is drawn by its
    own number, so that longer codes begin with the shorter ones. Pairs whose weight is at rounding level are noise, and
    mixtures take their place.
    """
    real = weights > _NOISE * weights.max(initial=0.0)
    left, right, weights = left[:, real], right[:, real], weights[real]
    own = slice(0, min(n_bits, left.shape[1] if kept is None else kept))
    missing = n_bits - len(weights[own])
    if missing == 0:
        return left[:, own], right[:, own]
    draws = [np.random.default_rng([seed, number]).normal(size=left.shape[1]) for number in range(missing)]
    mixture = weights[:, None] * np.stack(draws, axis=1)
    return np.hstack([left[:, own], left @ mixture]), np.hstack([right[:, own], right @ mixture])


def random_complement(basis: FloatArray, n_columns: int, seed: int) -> FloatArray:
    """Return random unit columns outside the span of the orthonormal ``basis``, orthogonal to each other too.

    Where the space has no room left, the remaining columns are random ones inside it.
    """
    rng = np.random.default_rng([seed, len(basis)])
    room = len(basis) - basis.shape[1]
    outside = rng.normal(size=(len(basis), min(n_columns, room)))
    outside -= basis @ (basis.T @ outside)
    columns = np.linalg.qr(outside)[0]
    inside = rng.normal(size=(len(basis), n_columns - columns.shape[1]))
    return np.hstack([columns, inside / np.linalg.norm(inside, axis=0)])
