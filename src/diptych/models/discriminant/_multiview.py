"""What generalised multiview analysis maximises, whatever its graphs are, in the principal components of each side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import eigh

from diptych.arrays import FloatArray
from diptych.models.base import LinearProjectionModel, check_choice, check_components, check_number, check_numbers
from diptych.models.labels import ClassMeans, Targets
from diptych.models.linear import check_varies, fix_signs, moments, project, rounding_level


@dataclass(frozen=True)
class PrincipalView:
    """Rows, their mean, a basis that reduces their deviations to unit total variance, and the moments it keeps."""

    rows: FloatArray
    mean: FloatArray
    basis: FloatArray
    values: FloatArray

    @classmethod
    def of(
        cls, rows: FloatArray, mean: FloatArray, moment: FloatArray, energy: float, precision: float
    ) -> PrincipalView:
        """Keep the leading components with a share ``energy`` of the variance, and none that is rounding."""
        values, vectors = eigh(moment)
        values, vectors = values[::-1], vectors[:, ::-1]
        noise = rounding_level(len(values), precision) * max(values[0], 0.0)
        real = max(1, int((values > noise).sum()))
        shares = np.cumsum(values[:real]) / values[:real].sum()
        kept = min(real, int(np.searchsorted(shares, energy - 1e-12)) + 1)
        total = float(values[:real].sum()) / len(rows)
        return cls(rows, mean, vectors[:, :kept] / np.sqrt(total), values[:kept] / total)

    def moment(self) -> FloatArray:
        """Return the second moment of the reduced rows: they are uncorrelated."""
        return np.diag(self.values)

    def reduced(self) -> FloatArray:
        return project(self.rows, self.mean, self.basis)


Alignment = Literal["class_means", "pairs"]


class GeneralizedMultiviewModel(LinearProjectionModel):
    """Solves [[S_a, αC], [αCᵀ, S_b]] v = λ [[D_a, 0], [0, γD_b]] v for the largest λ.

    A subclass gives S, what shall spread, and D, what shall shrink, of each side; C is the alignment of both sides.
    Sides are centred, reduced to principal components and scaled to unit total variance; γ = tr(D_a)/tr(D_b).
    """

    n_components: int | None
    alpha: float
    alignment: Alignment
    energy: float
    regularization: float

    eigenvalues_: FloatArray

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        assert targets is not None, "the base class has checked that labels were given"
        check_numbers(self, "alpha", "regularization", low=0)
        check_choice("alignment", self.alignment, ("class_means", "pairs"))
        check_number("energy", self.energy, low=0, high=1, open_low=True)
        check_components(self.n_components, 1)
        check_varies(images=images, texts=texts)
        images, texts, targets = targets.with_labels_only(images, texts)
        sums = moments(images, texts)
        views = (
            PrincipalView.of(images, sums.image_mean, sums.image, self.energy, sums.precision),
            PrincipalView.of(texts, sums.text_mean, sums.text, self.energy, sums.precision),
        )
        spread, shrink = zip(*(self._scatters(view, targets) for view in views), strict=True)
        alignment = self._alignment(views, views[0].basis.T @ sums.cross @ views[1].basis, spread, targets)
        left, right = self._solve(spread, shrink, alignment, targets)
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_projection_, self.text_projection_ = views[0].basis @ left, views[1].basis @ right

    def _scatters(self, view: PrincipalView, targets: Targets) -> tuple[FloatArray, FloatArray]:
        """Return what shall spread and what shall shrink, as (d, d) matrices."""
        raise NotImplementedError

    def _alignment(
        self,
        views: tuple[PrincipalView, PrincipalView],
        cross: FloatArray,
        spread: tuple[FloatArray, ...],
        targets: Targets,
    ) -> FloatArray:
        """Return αC, with α relative to how large C is beside what shall spread."""
        if self.alignment == "pairs":
            images, texts, joint = views[0].moment(), views[1].moment(), cross
        else:
            shares = targets.distribution
            image_means, text_means = (ClassMeans.of(view.rows, view.mean, shares).means @ view.basis for view in views)
            images, texts, joint = image_means.T @ image_means, text_means.T @ text_means, image_means.T @ text_means
        size = float(np.sqrt(np.trace(images) * np.trace(texts)))
        wanted = float(np.sqrt(max(np.trace(spread[0]), 0) * max(np.trace(spread[1]), 0)))
        return self.alpha * (wanted / size if size > 0 else 0.0) * joint

    def _solve(
        self, spread: tuple[FloatArray, ...], shrink: tuple[FloatArray, ...], alignment: FloatArray, targets: Targets
    ) -> tuple[FloatArray, FloatArray]:
        traces = [float(np.trace(matrix)) for matrix in shrink]
        balance = traces[0] / traces[1] if min(traces) > 0 else 1.0
        ridged = [self._ridged(shrink[0]), self._ridged(balance * shrink[1])]
        n_images = len(spread[0])
        joint = np.block([[spread[0], alignment], [alignment.T, spread[1]]])
        metric = np.zeros_like(joint)
        metric[:n_images, :n_images], metric[n_images:, n_images:] = ridged
        kept = check_components(self.n_components, max(1, min(len(targets.classes) - 1, *map(len, spread))))
        size = len(joint)
        values, vectors = eigh((joint + joint.T) / 2, metric, subset_by_index=[size - kept, size - 1])
        self.eigenvalues_ = np.ascontiguousarray(values[::-1])
        return fix_signs(vectors[:n_images, ::-1], vectors[n_images:, ::-1])

    def _ridged(self, matrix: FloatArray) -> FloatArray:
        # Each side has unit total variance, so that a side without any scatter of its own still has a scale.
        ridge = max(self.regularization * float(np.trace(matrix)), 1e-10) / len(matrix)
        return np.asarray((matrix + matrix.T) / 2 + ridge * np.eye(len(matrix)))
