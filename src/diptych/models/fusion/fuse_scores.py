"""Scores of several models as one score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.models.fusion.given_weights import given_weights
from diptych.models.parameters import check_choice

Rescale = Literal["sigmoid", "zscore", "zscore_sigmoid", "none"]


def fuse_scores(
    scores: Sequence[ArrayLike],
    weights: Literal["average"] | Sequence[float] | FloatArray = "average",
    rescale: Rescale = "sigmoid",
) -> FloatArray:
    """Return the late fusion Σ λᵢ ρ(sᵢ) of the scores that several models give to the same items.

    ``scores`` has one array for each model, all of one shape, such as (queries, items); larger is better. ``weights``
    are λ, all equal for ``average``. ``rescale`` chooses ρ:

    * ``sigmoid``: 1/(1 + e⁻ˢ), as Dong et al. (2018, equation 12) write it; scores of a large scale saturate;
    * ``zscore``: (s − mean)/deviation over all scores of that model;
    * ``zscore_sigmoid``: the one after the other;
    * ``none``: scores as they are, as in the script that Dong et al. released.

    Use it for models of any kind. Where all of them compare points by inner products, `FusedModel` gives the same
    order (with ``zscore`` or ``none``) and can be indexed.

    >>> from diptych.models import fuse_scores
    >>> fuse_scores([[1.0, 3.0], [10.0, 0.0]], rescale="none").tolist()
    [5.5, 1.5]
    >>> fuse_scores([[1.0, 3.0], [10.0, 0.0]], weights=[0.9, 0.1], rescale="zscore").round(6).tolist()
    [-0.8, 0.8]
    """
    try:
        arrays = [np.asarray(values, dtype=np.float64) for values in scores]
    except (TypeError, ValueError):
        raise InvalidInputError("scores must be numbers, one array for each model") from None
    if not arrays:
        raise InvalidInputError("there are no scores to fuse; give one array for each model")
    if any(array.shape != arrays[0].shape for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InvalidInputError(f"all models score the same items, but the arrays have the shapes {shapes}")
    if not all(np.isfinite(array).all() for array in arrays):
        raise InvalidInputError("the scores hold NaN or infinity; leave those items out")
    check_choice("rescale", rescale, tuple(_RESCALINGS))
    total = np.zeros(arrays[0].shape)
    for weight, array in zip(given_weights(weights, len(arrays)), arrays, strict=True):
        total += weight * _RESCALINGS[rescale](array)
    return total


def _sigmoid(values: FloatArray) -> FloatArray:
    # The half of tanh never overflows.
    return np.asarray(0.5 * (1 + np.tanh(values / 2)))


def _zscore(values: FloatArray) -> FloatArray:
    deviation = float(values.std())
    return np.asarray((values - values.mean()) / deviation if deviation > 0 else np.zeros_like(values))


_RESCALINGS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sigmoid": _sigmoid,
    "zscore": _zscore,
    "zscore_sigmoid": lambda values: _sigmoid(_zscore(values)),
    "none": lambda values: values,
}
