"""The shape that classifiers on cross-product features share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from diptych.arrays import BoolArray, FloatArray
from diptych.models.labels import Targets
from diptych.models.linear import centre, check_varies, column_means
from diptych.models.pairwise.bilinear import BilinearModel
from diptych.models.pairwise.bilinear_solver import fit_bilinear
from diptych.models.pairwise.pair_term import PairTerm
from diptych.models.parameters import check_choice, check_count, check_number

Instances = Literal["pairs", "rows"]


class CrossProductModel(BilinearModel):
    """Minimises a convex loss of aᵀWb over pairs plus a ridge on W; a subclass chooses the pairs and the loss."""

    C: float
    ratio: int | None
    feature_share: float
    center: bool
    instances: Instances
    max_iter: int
    tol: float
    seed: int

    intercept_: float

    def _check_parameters(self) -> None:
        check_number("C", self.C, low=0, open_low=True)
        if self.ratio is not None:
            check_count("ratio", self.ratio)
        check_number("feature_share", self.feature_share, low=0, high=1, open_low=True)
        check_choice("instances", self.instances, ("pairs", "rows"))
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, low=0, open_low=True)

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        self._check_parameters()
        check_varies(images, name="images")
        check_varies(texts, name="texts")
        self.image_mean_, self.text_mean_ = self._means(images, texts)
        common = np.result_type(images, texts)
        image_rows = centre(images, self.image_mean_).astype(common, copy=False)
        text_rows = centre(texts, self.text_mean_).astype(common, copy=False)
        weights, self.intercept_ = self._solve(image_rows, text_rows, targets)
        self._keep(weights, float(np.finfo(common).eps))

    def _means(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.center:
            return column_means(images), column_means(texts)
        return np.zeros(images.shape[1]), np.zeros(texts.shape[1])

    def _solve(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> tuple[FloatArray, float]:
        raise NotImplementedError

    def _minimise(
        self,
        images: FloatArray,
        texts: FloatArray,
        terms: Sequence[PairTerm],
        *,
        curvature: float,
        intercept: float | None = None,
    ) -> tuple[FloatArray, float]:
        return fit_bilinear(
            images,
            texts,
            terms,
            ridge=self._ridge(len(images), sum(term.pairs.count for term in terms)),
            curvature=curvature,
            intercept=intercept,
            mask=self._mask(images.shape[1], texts.shape[1]),
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _ridge(self, n_rows: int, n_pairs: int) -> float:
        """Return λ times the number of pairs, the ridge beside a sum instead of a mean of losses; λ = 1/(mC)."""
        return (1.0 if self.instances == "pairs" else n_pairs / n_rows) / self.C

    def _mask(self, image_width: int, text_width: int) -> BoolArray | None:
        if self.feature_share == 1:
            return None
        size = image_width * text_width
        mask = np.zeros(size, dtype=bool)
        # A stream of its own: the sampled pairs stay the same when the share changes.
        rng = np.random.default_rng([self.seed, 1])
        mask[rng.choice(size, size=max(1, round(self.feature_share * size)), replace=False)] = True
        return mask.reshape(image_width, text_width)
