"""Scores that are inner products of one vector for the picture and one for the text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.space import IndexForm, Space


@dataclass(frozen=True)
class LinearForm:
    """Turns points of a space into vectors whose inner product is the space's score, in both directions.

    A cosine is the inner product of unit vectors, a Pearson correlation that of centred unit vectors, and minus the
    divergence −KL(p‖q) = [p, H(p)]·[log q, 1] one as well.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.models.fusion.linear_form import LinearForm
    >>> images, texts = np.array([[3.0, 4.0]]), np.array([[5.0, 0.0]])
    >>> form = LinearForm.of(Space("cosine"), "CCA")
    >>> (form.images(images) @ form.texts(texts).T).round(6).tolist(), Space("cosine").compare(images, texts).tolist()
    ([[0.6]], [[0.6]])
    """

    form: IndexForm
    is_mean: bool

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
        return cls(form, space.name == "covariance")

    def images(self, points: AnyArray) -> FloatArray:
        """Return the vectors of pictures."""
        vectors = _floating(self.form.queries(_floating(points)))
        return vectors / vectors.dtype.type(vectors.shape[1]) if self.is_mean else vectors

    def texts(self, points: AnyArray) -> FloatArray:
        """Return the vectors of texts."""
        return _floating(self.form.gallery(_floating(points)))


def _floating(points: AnyArray) -> FloatArray:
    return points if points.dtype in (np.float32, np.float64) else points.astype(np.float64)
