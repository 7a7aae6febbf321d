"""What methods of alignment share: unpaired rows, rows prepared as directions, and the nearest orthogonal map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import (
    AnyArray,
    FloatArray,
    as_labels,
    as_matrix,
    check_scale,
    column_names,
    map_rows,
    row_blocks,
    unit_rows,
)
from diptych.errors import InvalidInputError
from diptych.models.base import CrossModalModel, Side
from diptych.models.correlation.cca import AUTO_NOISE_GAIN, canonical_directions, ridges_of
from diptych.models.linear import centre, check_varies, column_means, fix_signs
from diptych.models.parameters import Ridge


@dataclass(frozen=True)
class SideRows:
    """The rows of one side: those that belong to a row of the other side, and those that stand alone.

    Both are prepared: less the mean of all of them, and of unit length.
    """

    mean: FloatArray
    paired: FloatArray
    unpaired: FloatArray

    @classmethod
    def prepared(cls, paired: FloatArray, unpaired: FloatArray) -> Self:
        """Prepare raw rows of one side."""
        n_rows = max(1, len(paired) + len(unpaired))
        mean = (column_means(paired) * len(paired) + column_means(unpaired) * len(unpaired)) / n_rows
        return cls(mean, prepare(paired, mean), prepare(unpaired, mean))

    def turned(self, axes: FloatArray) -> SideRows:
        """Return the same rows along other axes."""
        kernel = axes.astype(self.paired.dtype, copy=False)
        return SideRows(self.mean, self.paired @ kernel, self.unpaired @ kernel)

    @property
    def all(self) -> FloatArray:
        """All rows, the paired ones first."""
        return np.concatenate([self.paired, self.unpaired])


class AlignmentModel(CrossModalModel):
    """A method that may also learn from pictures without texts and from texts without pictures.

    ``fit`` takes them as ``more_images`` and ``more_texts``; their rows do not belong together. A method that does
    without any pair (``needs`` lacks ``pairs``) is fitted by ``fit(None, None, more_images=..., more_texts=...)``.
    """

    takes_unpaired: ClassVar[bool] = True

    image_mean_: FloatArray
    text_mean_: FloatArray
    image_projection_: FloatArray
    text_projection_: FloatArray

    def fit(
        self,
        images: ArrayLike | None,
        texts: ArrayLike | None,
        labels: ArrayLike | None = None,
        *,
        more_images: ArrayLike | None = None,
        more_texts: ArrayLike | None = None,
    ) -> Self:
        """Learn from aligned rows and from rows that stand alone, and return the model itself."""
        self._check_parameters()
        image_rows, image_names = _checked(images, more_images, "images")
        text_rows, text_names = _checked(texts, more_texts, "texts")
        if labels is not None:
            as_labels(labels)
        self._check_rows(image_rows[0], text_rows[0])
        n_pairs = len(image_rows[0])
        if n_pairs == 0 and "pairs" in self.needs:
            raise InvalidInputError(f"{type(self).__name__} learns from pairs: call fit(images, texts)")
        check_varies(images=np.concatenate(image_rows), texts=np.concatenate(text_rows))
        sides = SideRows.prepared(*image_rows), SideRows.prepared(*text_rows)
        self.image_mean_, self.text_mean_ = sides[0].mean, sides[1].mean
        self._align(*sides)
        widths = image_rows[0].shape[1], text_rows[0].shape[1]
        self._finish_fit(n_pairs, *widths, (image_names, text_names))
        return self

    def _align(self, images: SideRows, texts: SideRows) -> None:
        raise NotImplementedError


class DirectionModel(AlignmentModel):
    """Encodes x as its direction, turned: ``u(x − mean) @ projection`` with u the scaling to unit length."""

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        mean, projection = self._of_side(side, "mean", "projection")
        kernel = projection.astype(rows.dtype, copy=False)
        return map_rows(lambda block: prepare(block, mean) @ kernel, rows, kernel.shape[1])

    def _set_map(self, cross: FloatArray, n_components: int | None = None) -> None:
        """Take the orthogonal map nearest to a cross-covariance, as one projection for each side."""
        self.image_projection_, self.text_projection_ = polar_factors(cross, n_components)


def prepare(rows: FloatArray, mean: FloatArray) -> FloatArray:
    """Return rows less a mean and of unit length, in this order; a row equal to the mean stays zero."""
    return unit_rows(centre(rows, mean))


def cross_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``leftᵀ right``, summed in float64 block by block."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for block in row_blocks(len(left)):
        total += left[block].T.astype(np.float64) @ right[block]
    return total


def polar_factors(cross: FloatArray, n_components: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return U and V of the singular vectors of a matrix that carry it: U Vᵀ is the nearest partial isometry.

    Singular vectors of values at rounding level are left out: with fewer pairs than dimensions LAPACK returns anything
    for them, and the whole polar factor would add a random turn of what no pair says anything about.
    """
    left, singular, right = np.linalg.svd(cross, full_matrices=False)
    noise = singular.max(initial=0.0) * max(cross.shape) * float(np.finfo(np.float32).eps)
    kept = max(1, int((singular > noise).sum()))
    kept = kept if n_components is None else min(kept, n_components)
    return fix_signs(left[:, :kept], right[:kept].T)


def weighted_directions(
    image: FloatArray, text: FloatArray, cross: FloatArray, n_rows: int, regularization: Ridge, n_components: int | None
) -> tuple[FloatArray, FloatArray]:
    """Return canonical directions of covariances of ``n_rows`` prepared rows, each times its correlation."""
    left, correlations, right = canonical_directions(
        image,
        text,
        cross,
        *ridges_of(image, text, cross, n_rows, regularization),
        n_components=n_components,
        precision=float(np.finfo(np.float32).eps),
        noise_gain=AUTO_NOISE_GAIN,
    )
    return left * correlations, right * correlations


def _checked(
    paired: ArrayLike | None, unpaired: ArrayLike | None, name: str
) -> tuple[tuple[FloatArray, FloatArray], AnyArray | None]:
    """Return checked rows of one side, none where none were given, and the names of their columns."""
    given = [
        as_matrix(rows, name=said) for rows, said in ((paired, name), (unpaired, f"more_{name}")) if rows is not None
    ]
    if not given:
        raise InvalidInputError(f"no {name} were given: pass {name}, or more_{name} where nothing is paired")
    for rows in given:
        check_scale(rows, name=name)
        if rows.shape[1] != given[0].shape[1]:
            raise InvalidInputError(
                f"more_{name} must have {given[0].shape[1]} features like {name}, got {rows.shape[1]}"
            )
    empty = given[0][:0]
    both = (given[0] if paired is not None else empty, given[-1] if unpaired is not None else empty)
    return both, column_names(paired if paired is not None else unpaired, name=name)
