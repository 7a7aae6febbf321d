"""Labels as learners want them: a class list, a 0/1 indicator matrix, and statistics of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, as_labels, row_blocks, unit_rows
from diptych.errors import InvalidInputError
from diptych.models.linear import centre


@dataclass(frozen=True)
class Targets:
    """The classes of the training rows: ``indicator[i, k]`` is 1 when row i belongs to ``classes[k]``."""

    classes: AnyArray
    indicator: FloatArray
    multilabel: bool

    @classmethod
    def from_labels(cls, labels: ArrayLike, n_rows: int, classes: AnyArray | None = None) -> Targets:
        """Accept one class per row, or a 0/1 matrix with one column per class, dense or sparse.

        With ``classes``, all of them in their order, the rows are a part of those that are learned from, and need not
        have every class.
        """
        values = as_labels(labels)
        if values.ndim not in (1, 2):
            raise InvalidInputError(f"labels must be one per row or a 0/1 matrix, got {values.ndim} dimensions")
        if len(values) != n_rows:
            raise InvalidInputError(f"labels must be aligned with the rows, got {len(values)} labels for {n_rows} rows")
        return cls._multiple(values, classes) if values.ndim == 2 else cls._single(values, classes)

    @classmethod
    def _single(cls, values: AnyArray, known: AnyArray | None) -> Targets:
        if values.dtype == object:
            raise InvalidInputError("labels must be all integers or all strings; replace missing labels first")
        if np.issubdtype(values.dtype, np.floating):
            if not np.isfinite(values).all():
                raise InvalidInputError("labels hold NaN or infinity; drop the rows without a label")
            if (values != np.round(values)).any():
                raise InvalidInputError("labels must be classes (integers or strings), got fractional numbers")
        classes, codes = np.unique(values, return_inverse=True)
        if known is not None:
            unknown = classes[~np.isin(classes, known)]
            if len(unknown):
                raise InvalidInputError(f"labels hold {unknown[0]!s}, which is not among the given classes")
            classes, codes = known, np.searchsorted(known, classes)[codes]
        if len(classes) < 2:
            raise InvalidInputError(f"labels hold one class only ({classes[0]!s}); at least two are needed")
        indicator = np.zeros((len(values), len(classes)))
        indicator[np.arange(len(values)), codes] = 1
        return cls(classes, indicator, multilabel=False)

    @classmethod
    def _multiple(cls, values: AnyArray, known: AnyArray | None) -> Targets:
        if not np.issubdtype(values.dtype, np.number) and values.dtype != bool:
            raise InvalidInputError("a label matrix must hold 0 and 1, one column per class")
        if not np.isin(values, (0, 1)).all():
            raise InvalidInputError("a label matrix must hold 0 and 1 only, one column per class")
        if values.shape[1] < 2:
            raise InvalidInputError("a label matrix needs at least two columns, one per class")
        if known is None and not values.any():
            raise InvalidInputError("no row of the label matrix has a label")
        if known is not None and len(known) != values.shape[1]:
            raise InvalidInputError(f"the label matrix must have {len(known)} columns, got {values.shape[1]}")
        return cls(np.arange(values.shape[1]), values.astype(np.float64), multilabel=True)

    @property
    def labelled(self) -> AnyArray:
        """The rows with at least one label; only these can teach a classifier."""
        return np.flatnonzero(self.indicator.any(axis=1))

    def with_labels_only(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, FloatArray, Targets]:
        """Return the rows of both sides that have a label, and their targets."""
        rows = self.labelled
        if len(rows) == len(images):
            return images, texts, self
        return images[rows], texts[rows], Targets(self.classes, self.indicator[rows], self.multilabel)

    @property
    def distribution(self) -> FloatArray:
        """Labels as probabilities: each labelled row spreads one unit evenly over its classes."""
        counts = self.indicator.sum(axis=1, keepdims=True)
        return np.asarray(self.indicator / np.maximum(counts, 1))

    @property
    def unit(self) -> FloatArray:
        """Labels as rows of unit length; rows without a label stay zero."""
        return unit_rows(self.indicator)


@dataclass(frozen=True)
class ClassMeans:
    """Means and sizes of classes; a row with several labels counts for each by its share."""

    means: FloatArray
    sizes: FloatArray

    @classmethod
    def of(cls, sums: FloatArray, sizes: FloatArray) -> ClassMeans:
        """Return the statistics of classes with these sums of their rows; empty classes are left out."""
        present = sizes > 0
        return cls(sums[present] / sizes[present, None], sizes[present])

    def between(self) -> FloatArray:
        """Return the scatter between classes, Σ_c n_c m_c m_cᵀ."""
        return (self.means * self.sizes[:, None]).T @ self.means


def weighted_sums(rows: FloatArray, mean: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``weightsᵀ (rows − mean)`` in float64, block by block."""
    total = np.zeros((weights.shape[1], rows.shape[1]))
    for block in row_blocks(len(rows)):
        total += weights[block].T @ centre(rows[block], mean)
    # Rows are centred in their own precision; what that leaves of the mean is the same in every row.
    return total - np.outer(weights.sum(axis=0), mean - mean.astype(rows.dtype))


def weighted_moment(rows: FloatArray, mean: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``Σ_i weights_i (x_i − mean)(x_i − mean)ᵀ`` in float64, block by block."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for block in row_blocks(len(rows)):
        deviations = centre(rows[block], mean)
        total += (deviations * weights[block, None].astype(deviations.dtype)).T @ deviations
    return total
