"""Second moments and affine maps of tall matrices, row block by row block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from diptych.arrays import FloatArray, map_rows, row_blocks
from diptych.errors import InvalidInputError


@dataclass(frozen=True)
class Moments:
    """Means and centred second moments (sums over rows, not averages) of two aligned views, in float64.

    ``precision`` is the rounding unit of the rows they were summed from: what lies below it is noise.
    """

    n_rows: int
    image_mean: FloatArray
    text_mean: FloatArray
    image: FloatArray
    text: FloatArray
    cross: FloatArray
    precision: float

    def about_origin(self) -> Moments:
        """Return the moments of the rows as they are, not of their deviations from the means."""
        image_mean, text_mean = self.image_mean, self.text_mean
        return replace(
            self,
            image_mean=np.zeros_like(image_mean),
            text_mean=np.zeros_like(text_mean),
            image=self.image + self.n_rows * np.outer(image_mean, image_mean),
            text=self.text + self.n_rows * np.outer(text_mean, text_mean),
            cross=self.cross + self.n_rows * np.outer(image_mean, text_mean),
        )


def check_varies(**sides: FloatArray) -> None:
    """Raise when all rows of a side are the same, which leaves nothing to correlate."""
    for name, rows in sides.items():
        # Stops at the first block that differs.
        if all(bool((rows[block] == rows[0]).all()) for block in row_blocks(len(rows))):
            raise InvalidInputError(f"all rows of {name} are the same: there is nothing to correlate")


def moments(images: FloatArray, texts: FloatArray) -> Moments:
    """Accumulate the moments of two aligned matrices without copying either.

    Rows are centred before they are multiplied, so that float32 keeps its digits far from the origin.
    """
    image_mean, text_mean = column_means(images), column_means(texts)
    blocks = ((centre(images[rows], image_mean), centre(texts[rows], text_mean)) for rows in row_blocks(len(images)))
    sums = moments_of_blocks(blocks, image_mean.size, text_mean.size, center=False)
    return replace(sums, image_mean=image_mean, text_mean=text_mean)


def moments_of_blocks(
    blocks: Iterable[tuple[FloatArray, FloatArray]], image_width: int, text_width: int, *, center: bool
) -> Moments:
    """Sum over aligned blocks in one pass; each block multiplies in its own precision, the sums are float64.

    With ``center`` the means are taken out of the sums afterwards, otherwise they are reported as zero.
    """
    image_sum, text_sum = np.zeros(image_width), np.zeros(text_width)
    image, text = np.zeros((image_width, image_width)), np.zeros((text_width, text_width))
    cross = np.zeros((image_width, text_width))
    n_rows, precision = 0, float(np.finfo(np.float64).eps)
    for images, texts in blocks:
        precision = max(precision, *(float(np.finfo(block.dtype).eps) for block in (images, texts)))
        image += images.T @ images
        text += texts.T @ texts
        cross += images.T @ texts
        n_rows += len(images)
        if center:
            image_sum += images.sum(axis=0)
            text_sum += texts.sum(axis=0)
    image_mean, text_mean = image_sum / n_rows, text_sum / n_rows
    image -= np.outer(image_sum, image_mean)
    text -= np.outer(text_sum, text_mean)
    cross -= np.outer(image_sum, text_mean)
    return Moments(n_rows, image_mean, text_mean, image, text, cross, precision)


def column_means(matrix: FloatArray) -> FloatArray:
    """Mean of each column, summed in float64 block by block."""
    total = np.zeros(matrix.shape[1])
    for rows in row_blocks(len(matrix)):
        total += matrix[rows].sum(axis=0, dtype=np.float64)
    return total / len(matrix)


def column_deviations(matrix: FloatArray, mean: FloatArray) -> FloatArray:
    """Standard deviation of each column; constant columns give 1, so that dividing by it is always safe."""
    total = np.zeros(matrix.shape[1])
    for rows in row_blocks(len(matrix)):
        total += ((matrix[rows] - mean) ** 2).sum(axis=0, dtype=np.float64)
    deviation = np.sqrt(total / len(matrix))
    noise = 8 * np.finfo(matrix.dtype).eps * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    return np.where(deviation > noise, deviation, 1.0)


def centre(matrix: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the deviations from ``mean`` in the precision of ``matrix``."""
    return np.asarray(matrix - mean.astype(matrix.dtype, copy=False))


def project(matrix: FloatArray, mean: FloatArray, projection: FloatArray) -> FloatArray:
    """Return ``(matrix − mean) @ projection`` in the precision of ``matrix``, centring one block at a time."""
    kernel = projection.astype(matrix.dtype, copy=False)
    return map_rows(lambda rows: centre(rows, mean) @ kernel, matrix, kernel.shape[1])


def relative_ridge(moment: FloatArray, share: float) -> float:
    """Return ``share`` of the mean of the diagonal, so that a ridge means the same on every scale."""
    return share * float(np.trace(moment)) / len(moment)


def rounding_level(size: int, precision: float) -> float:
    """Return the share of the largest eigenvalue below which one is noise: that of float64, or of the data."""
    return max(size * float(np.finfo(np.float64).eps), 32 * precision)


def whitener(moment: FloatArray, ridge: float, precision: float = 0.0) -> FloatArray:
    """Return R with Rᵀ (moment + ridge·I) R = I on the directions that carry variance.

    A Cholesky factor serves when the matrix is well conditioned. Otherwise eigenvalues at rounding level, that of
    float64 or of the data (``precision``), are dropped, so that constant columns and n < d give fewer columns, never
    infinity.
    """
    regular = moment + ridge * np.eye(len(moment))
    noise = rounding_level(len(moment), precision)
    try:
        factor = cholesky(regular, lower=True)
    except LinAlgError:
        return _eigen_whitener(regular, noise)
    pivots = np.diag(factor)
    if pivots.min() < max(1e-6, np.sqrt(noise)) * pivots.max():
        return _eigen_whitener(regular, noise)
    return np.asarray(solve_triangular(factor, np.eye(len(factor)), lower=True).T)


def _eigen_whitener(regular: FloatArray, noise: float) -> FloatArray:
    values, vectors = eigh(regular)
    kept = values > max(values[-1], 0.0) * noise
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def fix_signs(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Flip pairs of columns together so that the largest entry of each left column is positive."""
    largest = np.abs(left).argmax(axis=0)
    signs = np.where(left[largest, np.arange(left.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(left * signs), np.asarray(right * signs)
