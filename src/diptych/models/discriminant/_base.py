"""The shapes of methods: what generalised multiview analysis maximises, and regression of labels from features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy

from diptych.arrays import AnyArray, FloatArray
from diptych.models.base import CrossModalModel, LinearProjectionModel, Side
from diptych.models.labels import ClassMeans
from diptych.models.linear import fix_signs, project, rounding_level
from diptych.models.moments import Moments
from diptych.models.parameters import Count, NonNegative, PositiveFraction, Ridge, check_components

MOST_SHRINKAGE = 0.99


@dataclass(frozen=True)
class PrincipalView:
    """A basis that reduces the deviations of rows from their mean to unit total variance, and the moments it keeps."""

    mean: FloatArray
    basis: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, mean: FloatArray, moment: FloatArray, n_rows: int, energy: float, precision: float) -> PrincipalView:
        """Keep the leading components with a share ``energy`` of the variance, and none that is rounding."""
        values, vectors = scipy.linalg.eigh(moment)
        values, vectors = values[::-1], vectors[:, ::-1]
        noise = rounding_level(len(values), precision) * max(values[0], 0.0)
        real = max(1, int((values > noise).sum()))
        shares = np.cumsum(values[:real]) / values[:real].sum()
        kept = min(real, int(np.searchsorted(shares, energy - 1e-12)) + 1)
        total = float(values[:real].sum()) / n_rows
        return cls(mean, vectors[:, :kept] / np.sqrt(total), values[:kept] / total)

    def moment(self) -> FloatArray:
        """Return the second moment of the reduced rows: they are uncorrelated."""
        return np.diag(self.values)

    def reduced(self, rows: FloatArray) -> FloatArray:
        return project(rows, self.mean, self.basis)

    def class_means(self, sums: FloatArray, sizes: FloatArray) -> ClassMeans:
        """Return the statistics of classes in the reduced space, from sums of their rows in the space of features."""
        statistics = ClassMeans.of(sums, sizes)
        return ClassMeans(statistics.means @ self.basis, statistics.sizes)


Alignment = Literal["class_means", "pairs"]
Views = tuple[PrincipalView, PrincipalView]


def class_means(sums: Moments, views: Views) -> tuple[ClassMeans, ClassMeans]:
    """Return the statistics of the classes on each side, in its reduced space."""
    labels = sums.known_labels
    return views[0].class_means(labels.image, labels.totals), views[1].class_means(labels.text, labels.totals)


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralizedMultiviewModel(LinearProjectionModel):
    """Solves [[S_a, αC], [αCᵀ, S_b]] v = λ [[D_a, 0], [0, γD_b]] v for the largest λ.

    A subclass finds the `_views`, gives S, what shall spread, and D, what shall shrink, of each side, and solves; C is
    the alignment of both sides. These are centred, reduced to principal components and scaled to unit total variance; γ
    = tr(D_a)/tr(D_b). Labels enter as shares that sum to one, and rows without any are left out.
    """

    n_components: Count | None = None
    alpha: NonNegative = 5.0
    alignment: Alignment = "class_means"
    energy: PositiveFraction = 0.95
    regularization: Ridge = 0.001
    metric: str = "cosine"

    def _views(self, sums: Moments) -> Views:
        sums.check_varies()
        return (
            PrincipalView.of(sums.image_mean, sums.image, sums.n_rows, self.energy, sums.precision),
            PrincipalView.of(sums.text_mean, sums.text, sums.n_rows, self.energy, sums.precision),
        )

    def _place(self, sums: Moments, views: Views, scatters: Sequence[tuple[FloatArray, FloatArray]]) -> None:
        """Learn from what shall spread and what shall shrink on each side, as (d, d) matrices."""
        spread, shrink = zip(*scatters, strict=True)
        left, right = self._solve(spread, shrink, self._alignment(sums, views, spread), sums)
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        # Here and not before: the signs of principal components are open, too.
        self.image_projection_, self.text_projection_ = fix_signs(views[0].basis @ left, views[1].basis @ right)

    def _alignment(self, sums: Moments, views: Views, spread: tuple[FloatArray, ...]) -> FloatArray:
        """Return αC, with α relative to how large C is beside what shall spread."""
        if self.alignment == "pairs":
            images, texts = views[0].moment(), views[1].moment()
            joint = views[0].basis.T @ sums.cross @ views[1].basis
        else:
            image_means, text_means = (each.means for each in class_means(sums, views))
            images, texts, joint = image_means.T @ image_means, text_means.T @ text_means, image_means.T @ text_means
        size = float(np.sqrt(np.trace(images) * np.trace(texts)))
        wanted = float(np.sqrt(max(np.trace(spread[0]), 0) * max(np.trace(spread[1]), 0)))
        return self.alpha * (wanted / size if size > 0 else 0.0) * joint

    def _solve(
        self, spread: tuple[FloatArray, ...], shrink: tuple[FloatArray, ...], alignment: FloatArray, sums: Moments
    ) -> tuple[FloatArray, FloatArray]:
        traces = [float(np.trace(matrix)) for matrix in shrink]
        balance = traces[0] / traces[1] if min(traces) > 0 else 1.0
        ridged = [self._ridged(shrink[0], sums.n_rows), self._ridged(balance * shrink[1], sums.n_rows)]
        n_images = len(spread[0])
        joint = np.block([[spread[0], alignment], [alignment.T, spread[1]]])
        metric = np.zeros_like(joint)
        metric[:n_images, :n_images], metric[n_images:, n_images:] = ridged
        kept = check_components(self.n_components, max(1, min(len(sums.known_labels.classes) - 1, *map(len, spread))))
        size = len(joint)
        values, vectors = scipy.linalg.eigh((joint + joint.T) / 2, metric, subset_by_index=[size - kept, size - 1])
        self.eigenvalues_ = np.ascontiguousarray(values[::-1])
        return vectors[:n_images, ::-1], vectors[n_images:, ::-1]

    def _ridged(self, matrix: FloatArray, n_rows: int) -> FloatArray:
        share = shrinkage_ridge(matrix, n_rows) if self.regularization == "auto" else self.regularization
        # Each side has unit total variance, so that a side without any scatter of its own still has a scale.
        ridge = max(share * float(np.trace(matrix)), 1e-10) / len(matrix)
        return np.asarray((matrix + matrix.T) / 2 + ridge * np.eye(len(matrix)))


def shrinkage_ridge(scatter: FloatArray, n_rows: int) -> float:
    """Return the ridge, relative to the mean of the diagonal, of the oracle approximating shrinkage (OAS).

    (1 − ρ)S + ρ tr(S)/d I is the covariance nearest to the true one among those of Gaussian rows, as far as S itself
    tells; a ridge of ρ/(1 − ρ) gives the same directions. Chen, Wiesel, Eldar and Hero, "Shrinkage algorithms for MMSE
    covariance estimation", IEEE Transactions on Signal Processing 2010.
    """
    size, mean = len(scatter), float(np.trace(scatter)) / len(scatter)
    square = float((scatter**2).mean())
    spread = (n_rows + 1) * (square - mean**2 / size)
    share = min((square + mean**2) / spread, MOST_SHRINKAGE) if spread > 0 else MOST_SHRINKAGE
    return share / (1 - share)


class RegressionSums(NamedTuple):
    """Everything that a regression of labels needs to know of the data: products, none of which grows with n."""

    image: FloatArray
    text: FloatArray
    cross: FloatArray
    image_labels: FloatArray
    text_labels: FloatArray
    image_scale: float
    text_scale: float

    @classmethod
    def of(cls, sums: Moments) -> RegressionSums:
        """Divide each side by the root mean square of its row lengths: parameters then mean the same on every scale."""
        raw = sums.about_origin()
        labels = raw.known_labels
        image_scale, text_scale = (float(np.sqrt(np.trace(part) / raw.n_rows)) or 1.0 for part in (raw.image, raw.text))
        return cls(
            raw.image / image_scale**2,
            raw.text / text_scale**2,
            raw.cross / (image_scale * text_scale),
            labels.image.T / image_scale,
            labels.text.T / text_scale,
            image_scale,
            text_scale,
        )


class LabelRegressionModel(CrossModalModel):
    """Encodes x as its scores of the training classes, ``x @ weights``, without centring; a subclass learns them."""

    classes_: AnyArray
    image_weights_: FloatArray
    text_weights_: FloatArray

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        (weights,) = self._of_side(side, "weights")
        return np.asarray(rows @ weights.astype(rows.dtype))

    def _keep(self, classes: AnyArray, sums: RegressionSums, image: FloatArray, text: FloatArray) -> None:
        """Keep the weights of rows that were divided by their scales."""
        self.classes_ = classes
        self.image_weights_, self.text_weights_ = image / sums.image_scale, text / sums.text_scale
