from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.models.base import FromTask, Grid, LinearProjectionModel, Variants
from diptych.models.labels import Targets
from diptych.models.linear import check_varies, column_means, fix_signs, project, singular_noise, whitener
from diptych.models.moments import MomentModel, Moments, moments
from diptych.models.parameters import Count, NonNegative, Ridge, check_components

_GRAM_SIZE = 200

RIDGES = np.logspace(-3, 2, 41)
"""Ridges that are tried, relative to the mean variance of a feature."""

AUTO_NOISE_GAIN = 1000.0
"""The smallest of them enlarges what rounding leaves by so much."""


class RidgedModel(MomentModel):
    """A method of moments with a ridge on both sides, which may be chosen from the data."""

    regularization: Ridge

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        sums = self._moments(images, texts, targets)
        sums.check_varies()
        pictures = self._pictures(images, texts)
        self._fit_ridged(sums, *self._ridges(sums if pictures is None else moments(*pictures)))

    def _pictures(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        # Texts of one picture are no independent witnesses: a ridge that they choose is too small.
        return picture_means(images, texts) if self.regularization == "auto" else None

    def _fit_moments(self, sums: Moments) -> None:
        sums.check_varies()
        self._fit_ridged(sums, *self._ridges(sums))

    def _ridges(self, sums: Moments, widths: tuple[int, int] | None = None) -> tuple[float, float]:
        image, text, cross = (moment / sums.n_rows for moment in (sums.image, sums.text, sums.cross))
        return ridges_of(image, text, cross, sums.n_rows, self.regularization, widths)

    def _fit_ridged(self, sums: Moments, image_ridge: float, text_ridge: float) -> None:
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class CCA(RidgedModel, LinearProjectionModel):
    """Regularised canonical correlation analysis: the directions in which the two sides agree most.

        max over w, v of  wᵀΣ_ab v / √(wᵀΣ_a w · vᵀΣ_b v)
        with Σ_a ← Σ_a + ε tr(Σ_a)/d_a · I, likewise Σ_b

    Both projections come from one SVD of the whitened cross-covariance L_a⁻¹ Σ_ab L_b⁻ᵀ, so their signs agree. The cost
    is O(n(d_a² + d_b² + d_a d_b)) and nothing larger than d × d is held. This is correlation matching (CM) with linear
    subspaces of Costa Pereira et al. (2014) and the CCA row of Menon et al. (2015).

    Parameters
    ----------
    n_components : int or None
        Dimensions of the common space; None keeps as many as the narrower side has.
    regularization : float or "auto"
        ε above: the ridge relative to the mean variance of a feature, so that it means the same on every scale.
        ``"auto"`` chooses one for each side, by how well that side predicts the other under it (generalised
        cross-validation over pictures): large with few, small with many.
    weight_power : float
        Multiply component k by its correlation to this power: 0 is plain CCA, larger values trust the strong
        components more. 1 makes the number of components a mild choice instead of a critical one.
    metric : str
        Name of the `Space`.

    Attributes
    ----------
    correlations_ : array
        Regularised canonical correlations, decreasing.

    References
    ----------
    Hotelling, "Relations between two sets of variates", Biometrika 1936. Costa Pereira et al., "On the role of
    correlation and abstraction in cross-modal multimedia retrieval", TPAMI 2014, eq. 4 (the text-side matrix is
    misprinted there: its middle factor must be the inverse image covariance).

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CCA
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(200, 2))
    >>> images = meaning @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(200, 8))
    >>> texts = meaning @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(200, 5))
    >>> model = CCA(n_components=2, regularization=1e-3).fit(images[:150], texts[:150])
    >>> model.correlations_.round(1)
    array([1., 1.])
    >>> bool(model.score(images[150:], texts[150:]) > 0.5)
    True
    """

    when_to_use: ClassVar[str] = (
        "Pairs without labels, as the first thing to try: closed form, seconds on 100,000 pairs."
    )
    grid: ClassVar[Grid] = {"n_components": FromTask.COMPONENTS, "regularization": [0.1, 1.0]}
    variants: ClassVar[Variants] = {"CCA": {"weight_power": 0.0}}

    n_components: Count | None = None
    regularization: Ridge = "auto"
    weight_power: NonNegative = 1.0
    metric: str = "cosine"

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        widths = images.shape[1], texts.shape[1]
        if 2 * len(images) > max(widths):
            super()._fit(images, texts, targets)
            return
        # Few rows span few dimensions: everything happens there, which costs n³ instead of d³.
        check_varies(images=images, texts=texts)
        means = column_means(images), column_means(texts)
        bases = row_basis(images, means[0]), row_basis(texts, means[1])

        def spanned(images: FloatArray, texts: FloatArray) -> Moments:
            return moments(project(images, means[0], bases[0]), project(texts, means[1], bases[1]))

        pictures = self._pictures(images, texts)
        sums = spanned(images, texts)
        ridges = self._ridges(sums if pictures is None else spanned(*pictures), widths)
        self._fit_ridged(replace(sums, image_mean=means[0], text_mean=means[1]), *ridges)
        projections = bases[0] @ self.image_projection_, bases[1] @ self.text_projection_
        self.image_projection_, self.text_projection_ = fix_signs(*projections)

    def _fit_ridged(self, sums: Moments, image_ridge: float, text_ridge: float) -> None:
        image, text, cross = (moment / sums.n_rows for moment in (sums.image, sums.text, sums.cross))
        left, self.correlations_, right = canonical_directions(
            image,
            text,
            cross,
            image_ridge,
            text_ridge,
            n_components=self.n_components,
            precision=sums.precision,
            offset=sums.offset,
            noise_gain=AUTO_NOISE_GAIN if self.regularization == "auto" else 1.0,
        )
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        weights = self.correlations_**self.weight_power
        self.image_projection_, self.text_projection_ = left * weights, right * weights


def picture_means(images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return each picture once, beside the mean of its texts; None where no picture is repeated."""
    known: dict[int, int] = {}
    numbers = np.array([known.setdefault(hash(row.tobytes()), len(known)) for row in images])
    if len(known) == len(images):
        return None
    firsts = np.unique(numbers, return_index=True)[1]
    shares = 1 / np.bincount(numbers)[numbers]
    means = scipy.sparse.csr_array((shares, (numbers, np.arange(len(numbers)))))
    return images[firsts], (means @ texts).astype(texts.dtype)


def row_basis(rows: FloatArray, mean: FloatArray) -> FloatArray:
    """Return an orthonormal basis, as columns, of what the deviations of some rows from their mean span."""
    _, values, axes = np.linalg.svd(rows - mean, full_matrices=False)
    kept = values > values[0] * max(rows.shape) * float(np.finfo(np.float64).eps)
    return np.ascontiguousarray(axes[kept].T)


def ridges_of(
    image: FloatArray,
    text: FloatArray,
    cross: FloatArray,
    n_rows: int,
    regularization: Ridge,
    widths: tuple[int, int] | None = None,
) -> tuple[float, float]:
    """Return what is added to the diagonals of two covariances of ``n_rows`` rows.

    ``widths`` are the numbers of features, where the covariances are those of fewer dimensions that hold all variance.
    """
    variances = [float(np.trace(own)) / width for own, width in zip((image, text), widths or cross.shape, strict=True)]
    if regularization != "auto":
        return regularization * variances[0], regularization * variances[1]
    sides = (image, text, cross), (text, image, cross.T)
    image_ridge, text_ridge = (
        variance * _chosen_ridge(*side, n_rows, variance) for side, variance in zip(sides, variances, strict=True)
    )
    return image_ridge, text_ridge


def _chosen_ridge(own: FloatArray, other: FloatArray, cross: FloatArray, n_rows: int, variance: float) -> float:
    """Return the ridge of one side, relative to the mean ``variance`` of a feature, under which it predicts best.

    That is generalised cross-validation: of the regression of the other side on this one,
    GCV(λ) = ‖(I − H)B‖² / (1 − tr H/n)² needs the eigenvalues of the covariance and the lengths of the cross-covariance
    along its eigenvectors alone. The logarithms of the ridges are averaged with the weights GCV^(−nr/2), as under a
    likelihood of n rows in r dimensions, as many as B effectively has: the best of a list would jump where two are as
    good.
    """
    values, vectors = scipy.linalg.eigh(own)
    values = np.maximum(values, 0.0)
    explained = ((vectors.T @ cross) ** 2).sum(axis=1)
    ridges = RIDGES[:, None] * variance
    kept = values / (values + ridges)
    residual = np.trace(other) - (explained * (values + 2 * ridges) / (values + ridges) ** 2).sum(axis=1)
    freedom = 1 - (1 + kept.sum(axis=1)) / n_rows
    possible = freedom > 0
    if not possible.any():
        return float(RIDGES[-1])
    errors = np.log(np.maximum(residual[possible], np.finfo(np.float64).tiny)) - 2 * np.log(freedom[possible])
    dimensions = np.trace(other) ** 2 / max(float((other**2).sum()), np.finfo(np.float64).tiny)
    weights = np.exp(-0.5 * n_rows * dimensions * (errors - errors.min()))
    return float(np.exp(np.average(np.log(RIDGES[possible]), weights=weights)))


def canonical_directions(
    image: FloatArray,
    text: FloatArray,
    cross: FloatArray,
    image_ridge: float,
    text_ridge: float,
    *,
    n_components: int | None = None,
    precision: float = 0.0,
    offset: float = 1.0,
    noise_gain: float = 1.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (W, correlations, V) of the ridged covariances, components in decreasing correlation.

    W and V whiten their sides and diagonalise the cross-covariance: WᵀΣ_aW = I, VᵀΣ_bV = I and WᵀΣ_abV =
    diag(correlations). What rounding alone correlates is left out: ``precision`` is the unit of the rows that the
    covariances were summed from, ``offset`` how far these lay from the origin in units of their spread, and
    ``noise_gain`` how much whitening may enlarge what rounding leaves.
    """
    image_whitener, text_whitener = whitener(image, image_ridge, precision), whitener(text, text_ridge, precision)
    left, correlations, right = _leading_svd(image_whitener.T @ cross @ text_whitener, n_components)
    noise = correlations.max(initial=0.0) * singular_noise(max(cross.shape), precision, offset) * noise_gain
    if len(correlations) < min(image_whitener.shape[1], text_whitener.shape[1]):
        # A Gram matrix knows singular values only down to the square root of the rounding unit.
        noise = max(noise, correlations.max(initial=0.0) * np.sqrt(np.finfo(np.float64).eps) * 8)
    kept = check_components(n_components, max(1, int((correlations > noise).sum())))
    directions = fix_signs(image_whitener @ left[:, :kept], text_whitener @ right[:kept].T)
    return directions[0], correlations[:kept], directions[1]


def _leading_svd(matrix: FloatArray, wanted: int | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the thin SVD, or only its leading part through the smaller Gram matrix where that is much cheaper."""
    if wanted is None or min(matrix.shape) < _GRAM_SIZE or wanted > min(matrix.shape) // 8:
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        return left, values, right
    if matrix.shape[0] < matrix.shape[1]:
        right, values, left = _leading_svd(matrix.T, wanted)
        return left.T, values, right.T
    size = matrix.shape[1]
    squares, vectors = scipy.linalg.eigh(matrix.T @ matrix, subset_by_index=[size - wanted, size - 1])
    values, vectors = np.sqrt(np.maximum(squares[::-1], 0)), vectors[:, ::-1]
    return matrix @ vectors / np.where(values > 0, values, 1), values, vectors.T
