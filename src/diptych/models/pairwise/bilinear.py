"""The shape that bilinear methods share: s(a, b) = aᵀWb, kept as two thin factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import svd

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.models.correlation.projection import LinearProjectionModel
from diptych.models.linear import fix_signs
from diptych.models.pairwise.feature_pair import FeaturePair
from diptych.models.parameters import check_count
from diptych.space import Space


class BilinearModel(LinearProjectionModel):
    """Scores centred features by aᵀWb; with W = UΣVᵀ the points are aᵀUΣ^½ and bᵀVΣ^½, compared by inner product.

    Both towers are as narrow as the rank of W, and any engine for inner products can index the points.
    """

    rank_: int
    """The numerical rank of W."""

    @property
    def space(self) -> Space:
        """Inner product."""
        return Space("dot")

    @property
    def W_(self) -> FloatArray:
        """The matrix of the score (image features × text features)."""
        self._check_fitted()
        return np.asarray(self.image_projection_ @ self.text_projection_.T)

    def strongest_pairs(
        self,
        n: int = 10,
        image_names: Sequence[str] | None = None,
        text_names: Sequence[str] | None = None,
    ) -> list[FeaturePair]:
        """Return the ``n`` entries of W that are largest in size: which features the score looks for together.

        Features without names are given by their number. A weight is per product of the two features, so features of
        different scales should be standardised before their weights are compared.
        """
        weights = self.W_
        _check_names("image_names", image_names, weights.shape[0])
        _check_names("text_names", text_names, weights.shape[1])
        sizes = np.abs(weights).ravel()
        wanted = min(check_count("n", n), sizes.size)
        strongest = np.argpartition(-sizes, wanted - 1)[:wanted]
        strongest = strongest[np.lexsort((strongest, -sizes[strongest]))]
        return [
            FeaturePair(
                int(row) if image_names is None else image_names[row],
                int(column) if text_names is None else text_names[column],
                float(weights[row, column]),
            )
            for row, column in zip(*np.unravel_index(strongest, weights.shape), strict=True)
        ]

    def _keep(self, weights: FloatArray, precision: float) -> None:
        """Learn the balanced factors of ``weights``; singular values at the rounding level of the data are dropped."""
        left, values, right = svd(weights, full_matrices=False)
        noise = float(values[0]) * max(weights.shape) * precision
        self.rank_ = int((values > noise).sum())
        # A point has at least one coordinate, even where there was nothing to learn.
        kept = max(1, self.rank_)
        roots = np.sqrt(values[:kept])
        self.image_projection_, self.text_projection_ = fix_signs(left[:, :kept] * roots, right[:kept].T * roots)


def _check_names(name: str, names: Sequence[str] | None, width: int) -> None:
    if names is not None and len(names) != width:
        raise InvalidInputError(f"{name} must name all {width} features, got {len(names)} names")
