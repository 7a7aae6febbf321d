"""Bilinear scores s(a, b) = aᵀWb: the models that share them, and W fitted without ever forming pair features."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from diptych.arrays import BoolArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.models.base import LinearProjectionModel
from diptych.models.labels import Targets
from diptych.models.linear import centre, check_varies, column_means, fix_signs, relative_offset, singular_noise
from diptych.models.pairwise._pairs import PairLoss, PairTerm, PrincipalAxes, RowLoss, curvature_and_start, minimise
from diptych.models.parameters import Count, Positive, PositiveFraction, check_count
from diptych.space import Space


class FeaturePair(NamedTuple):
    """One entry of W: the names or numbers of the two features and the weight of their product in the score."""

    image: str | int
    text: str | int
    weight: float


class BilinearModel(LinearProjectionModel):
    """Scores centred features by aᵀWb; with W = UΣVᵀ the points are aᵀUΣ^½ and bᵀVΣ^½, compared by inner product."""

    space = Space("dot")

    center: bool

    rank_: int
    """The numerical rank of W."""

    @property
    def W_(self) -> FloatArray:
        """The matrix of the score (image features × text features)."""
        self._check_fitted()
        return np.asarray(self.image_projection_ @ self.text_projection_.T)

    def strongest_pairs(
        self, n: int = 10, image_names: Sequence[str] | None = None, text_names: Sequence[str] | None = None
    ) -> list[FeaturePair]:
        """Return the ``n`` entries of W that are largest in size: which features the score looks for together.

        Features without names are given by their number. A weight is per product of the two features, so features of
        different scales should be standardised before their weights are compared.
        """
        weights = self.W_
        given = {"image_names": image_names, "text_names": text_names}
        for (name, names), width in zip(given.items(), weights.shape, strict=True):
            if names is not None and len(names) != width:
                raise InvalidInputError(f"{name} must name all {width} features, got {len(names)} names")
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

    def _means(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.center:
            return column_means(images), column_means(texts)
        return np.zeros(images.shape[1]), np.zeros(texts.shape[1])

    def _keep(self, weights: FloatArray, images: FloatArray, texts: FloatArray) -> None:
        """Learn the balanced factors of ``weights``; singular values at the rounding level of the data are dropped.

        ``images`` and ``texts`` are the centred rows.
        """
        left, values, right = scipy.linalg.svd(weights, full_matrices=False)
        precision = float(np.finfo(np.result_type(images, texts)).eps)
        offset = max(
            relative_offset(mean, (rows**2).mean(axis=0, dtype=np.float64))
            for mean, rows in ((self.image_mean_, images), (self.text_mean_, texts))
        )
        noise = float(values[0]) * singular_noise(max(weights.shape), precision, offset)
        self.rank_ = int((values > noise).sum())
        # A point has at least one coordinate, even where there was nothing to learn.
        kept = max(1, self.rank_)
        roots = np.sqrt(values[:kept])
        self.image_projection_, self.text_projection_ = fix_signs(left[:, :kept] * roots, right[:kept].T * roots)


def evaluate_terms(
    images: FloatArray, texts: FloatArray, weights: FloatArray, bias: float, terms: Sequence[PairTerm]
) -> tuple[float, FloatArray, float]:
    """Return the summed loss of all pairs under aᵀWb + c, and its gradients in W and c."""
    kernel = weights.astype(images.dtype, copy=False)
    # Scores need one product of the narrower side only: (AW)Bᵀ or A(BWᵀ)ᵀ.
    narrow_texts = texts.shape[1] <= images.shape[1]
    image_points, text_points = (images @ kernel, texts) if narrow_texts else (images, texts @ kernel.T)
    value, bias_gradient = 0.0, 0.0
    gradient = np.zeros(weights.shape)
    for term in terms:
        totals: list[float] = []
        sides = (text_points, image_points) if term.swapped else (image_points, text_points)
        sums = term.pairs.reduce(*sides, _shifted(term.loss, bias, totals))
        by_image, by_text = (sums.by_right, sums.by_left) if term.swapped else (sums.by_left, sums.by_right)
        # Casting the narrow sums keeps a float32 side from being copied to float64.
        gradient += (
            images.T @ by_image.astype(images.dtype, copy=False)
            if narrow_texts
            else by_text.T.astype(texts.dtype, copy=False) @ texts
        )
        value += sums.value
        bias_gradient += sum(totals)
    return value, gradient, bias_gradient


def _shifted(loss: RowLoss, bias: float, totals: list[float]) -> RowLoss:
    """Return ``loss`` of scores plus ``bias``, which notes the sum of the derivatives in ``totals``."""

    def shifted(scores: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        value, residual = loss(scores + bias, rows)
        totals.append(float(residual.sum(dtype=np.float64)))
        return value, residual

    return shifted


Instances = Literal["pairs", "rows"]


@dataclass(kw_only=True, eq=False, repr=False)
class CrossProductModel(BilinearModel):
    """Minimises a convex loss of aᵀWb over pairs plus a ridge on W; a subclass chooses the pairs and the loss."""

    C: Positive | None = None
    ratio: Count | None = 10
    feature_share: PositiveFraction = 1.0
    center: bool = True
    instances: Instances = "pairs"
    max_iter: Count = 1000
    tol: Positive = 0.0001
    random_state: int = 0
    loss: PairLoss = field(init=False, default="logistic")
    fit_intercept: bool = field(init=False)

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        check_varies(images=images, texts=texts)
        self.image_mean_, self.text_mean_ = self._means(images, texts)
        common = np.result_type(images, texts)
        image_rows = centre(images, self.image_mean_).astype(common, copy=False)
        text_rows = centre(texts, self.text_mean_).astype(common, copy=False)
        weights, self.intercept_ = self._solve(image_rows, text_rows, targets)
        self._keep(weights, image_rows, text_rows)

    def _solve(self, images: FloatArray, texts: FloatArray, targets: Any) -> tuple[FloatArray, float]:
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
        """Return (W, c) that minimise  Σ ℓ(aᵢᵀW bⱼ + c) + ridge/2 ‖W‖²  over the pairs of all ``terms``.

        ``intercept`` is where c starts, None keeps it 0. The Hessian is close to h·Σ_a ⊗ Σ_b + ridge, where h is the
        ``curvature`` of ℓ: diagonal in the principal axes of both sides, so that dividing by its root leaves L-BFGS a
        problem that is nearly round.
        """
        mask = self._mask(images.shape[1], texts.shape[1])
        axes = PrincipalAxes.of if mask is None else PrincipalAxes.unrotated
        image_axes, text_axes = axes(images), axes(texts)
        shape = len(image_axes.energies), len(text_axes.energies)
        count = sum(term.pairs.count for term in terms)
        ridge = self._ridge(images, texts, count)
        scale = 1 / np.sqrt(curvature * np.outer(image_axes.energies, text_axes.energies) + ridge / count)
        if mask is not None:
            scale = np.where(mask, scale, 0.0)
        bias_scale = 0.0 if intercept is None else 1 / np.sqrt(curvature)
        offset = intercept or 0.0

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            weights, bias = scale * flat[:-1].reshape(shape), offset + bias_scale * float(flat[-1])
            value, gradient, bias_gradient = evaluate_terms(image_axes.rows, text_axes.rows, weights, bias, terms)
            value += ridge / 2 * float((weights**2).sum())
            gradient = scale * (gradient + ridge * weights)
            return value / count, np.append(gradient.ravel(), bias_scale * bias_gradient) / count

        slope = objective(np.zeros(shape[0] * shape[1] + 1))[1]
        # Where the ridge outweighs the data this one step is the solution, which L-BFGS could not tell from zero.
        solution = minimise(objective, -slope, slope=slope, tol=self.tol, max_iter=self.max_iter, hint="lower C")
        weights = scale * solution[:-1].reshape(shape)
        return image_axes.basis @ weights @ text_axes.basis.T, offset + bias_scale * float(solution[-1])

    def _classify(
        self, images: FloatArray, texts: FloatArray, term: PairTerm, matched: float
    ) -> tuple[FloatArray, float]:
        """Minimise a loss of signs, of which the share ``matched`` is +1."""
        curvature, start = curvature_and_start(self.loss, matched if self.fit_intercept else 0.5)
        return self._minimise(
            images, texts, [term], curvature=curvature, intercept=start if self.fit_intercept else None
        )

    def _ridge(self, images: FloatArray, texts: FloatArray, n_pairs: int) -> float:
        """Return λ times the number of pairs, the ridge beside a sum instead of a mean of losses; λ = 1/(mC)."""
        # aᵀWb is the same for rows of unit length and a W that is larger by both lengths.
        lengths = (float((rows**2).mean(axis=0, dtype=np.float64).sum()) for rows in (images, texts))
        inverse = math.prod(lengths) if self.C is None else 1 / self.C
        return (1.0 if self.instances == "pairs" else n_pairs / len(images)) * inverse

    def _mask(self, image_width: int, text_width: int) -> BoolArray | None:
        if self.feature_share == 1:
            return None
        size = image_width * text_width
        mask = np.zeros(size, dtype=bool)
        # A stream of its own: the sampled pairs stay the same when the share changes.
        rng = np.random.default_rng([self.random_state, 1])
        mask[rng.choice(size, size=max(1, round(self.feature_share * size)), replace=False)] = True
        return mask.reshape(image_width, text_width)


SignMoment = Callable[[FloatArray, FloatArray], FloatArray]
"""Gives AᵀZB of two sides, where Z holds the sign of every pair."""


def fit_least_squares(
    images: FloatArray, texts: FloatArray, moment: SignMoment, *, ridge: float, mean_sign: float | None
) -> tuple[FloatArray, float]:
    """Return (W, c) that minimise  Σᵢⱼ (aᵢᵀW bⱼ + c − zᵢⱼ)² + ridge/2 ‖W‖²  over all n² pairs.

    ``mean_sign`` is the mean of Z when c is fitted, None when c is 0. In the principal axes of both sides the normal
    equations (AᵀA) W (BᵀB) + ridge/2 W = AᵀZB are one division an entry.
    """
    image_axes, text_axes = PrincipalAxes.of(images), PrincipalAxes.of(texts)
    count = len(images) * len(texts)
    divisor = count * np.outer(image_axes.energies, text_axes.energies) + ridge / 2
    signed = moment(image_axes.rows, text_axes.rows)
    if mean_sign is None:
        return image_axes.basis @ (signed / divisor) @ text_axes.basis.T, 0.0
    # Profiling c out centres the pair features a ⊗ b, whose mean is the product of the means.
    mean = np.outer(image_axes.rows.mean(axis=0, dtype=np.float64), text_axes.rows.mean(axis=0, dtype=np.float64))
    solved = (signed - count * mean_sign * mean) / divisor
    mean_solved = mean / divisor
    correction = count * float((mean * solved).sum()) / (1 - count * float((mean * mean_solved).sum()))
    weights = solved + correction * mean_solved
    return image_axes.basis @ weights @ text_axes.basis.T, mean_sign - float((mean * weights).sum())
