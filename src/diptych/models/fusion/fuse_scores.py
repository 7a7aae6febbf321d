"""Scores of several models as one score, with given weights, or as inner products of two vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.models.base import check_choice
from diptych.space import IndexForm, Space


def given_weights(weights: str | Sequence[float] | FloatArray, n_parts: int) -> FloatArray:
    """Return one number for each part, not all zero; ``average`` stands for equal ones that sum to 1.

    >>> from diptych.models.fusion.fuse_scores import given_weights
    >>> given_weights("average", 4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if isinstance(weights, str):
        if weights != "average":
            raise InvalidInputError(f"weights must be 'average' or one number for each part, got {weights!r}")
        return np.full(n_parts, 1 / n_parts)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_parts,):
        raise InvalidInputError(f"give one weight for each part, got {values.size} for {n_parts}")
    if not np.isfinite(values).all() or not values.any():
        raise InvalidInputError("weights must be finite numbers, at least one of them other than 0")
    return values


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


@dataclass(frozen=True)
class LinearForm:
    """Turns points of a space into vectors whose inner product is the space's score, in both directions.

    A cosine is the inner product of unit vectors, a Pearson correlation that of centred unit vectors, and minus the
    divergence −KL(p‖q) = [p, H(p)]·[log q, 1] one as well. A corrected score is one less the corrections of both sides.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.models.fusion.fuse_scores import LinearForm
    >>> images, texts = np.array([[3.0, 4.0]]), np.array([[5.0, 0.0]])
    >>> form = LinearForm.of(Space("cosine"), "CCA")
    >>> (form.images(images) @ form.texts(texts).T).round(6).tolist(), Space("cosine").compare(images, texts).tolist()
    ([[0.6]], [[0.6]])
    """

    form: IndexForm
    is_mean: bool
    is_corrected: bool

    @classmethod
    def of(cls, space: Space, name: str) -> LinearForm:
        """Return the form of a space, or say what to do with a part whose scores are no inner products."""
        form = space.indexable("image_query")
        # A split space compares other coordinates in each direction, kl_query changes its roles with the query.
        linear = form is not None and form.metric == "inner_product" and space.name != "kl_query"
        if form is None or not linear or space.split is not None:
            kind = f"split {space.name}" if space.split is not None else space.name
            raise InvalidInputError(
                f"the scores of part {name!r} ({kind}) are no inner products, so it cannot stand beside others in one "
                "space; fuse its scores with fuse_scores, or give it the metric cosine or dot"
            )
        return cls(form, space.name == "covariance", space.name == "corrected")

    def images(self, points: AnyArray) -> FloatArray:
        """Return the vectors of pictures."""
        if self.is_corrected:
            # Whichever side is asked, the order of its answers depends on their own corrections alone.
            return np.column_stack([_floating(points[:, :-1]), np.ones(len(points), points.dtype)])
        vectors = _floating(self.form.queries(_floating(points)))
        return vectors / vectors.dtype.type(vectors.shape[1]) if self.is_mean else vectors

    def texts(self, points: AnyArray) -> FloatArray:
        """Return the vectors of texts."""
        if self.is_corrected:
            vectors = _floating(points[:, :-2])
            return np.column_stack([vectors, -np.ones(len(points), points.dtype), -points[:, -2]])
        return _floating(self.form.gallery(_floating(points)))


def _floating(points: AnyArray) -> FloatArray:
    return points if points.dtype in (np.float32, np.float64) else points.astype(np.float64)
