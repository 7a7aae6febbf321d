"""Labels as learners want them (classes, a 0/1 matrix, statistics), and which rows answer each other by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_labels, row_blocks, unit_rows
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


_BLOCK_SETS = 512
_MOST_MARKS_IN_FULL = 256


@dataclass(frozen=True, eq=False)
class RelatedRows:
    """Rows are related when they share a mark: a label, or the picture they show where there are no labels.

    Rows are many and distinct sets of marks are few: row i has the marks that ``sets`` lists in row ``set_of[i]``, so
    that nothing grows with the square of the rows. A row without a mark is related to nothing.
    """

    set_of: IntArray
    sets: scipy.sparse.csr_array
    n_unrelated: IntArray

    @classmethod
    def of_marks(cls, indicator: AnyArray) -> RelatedRows:
        """Relate the rows of a 0/1 matrix that have a 1 in the same column."""
        sets, set_of = np.unique(np.asarray(indicator) > 0, axis=0, return_inverse=True)
        return cls._of(set_of.reshape(-1), scipy.sparse.csr_array(sets.astype(np.float32)))

    @classmethod
    def of_numbers(cls, numbers: IntArray) -> RelatedRows:
        """Relate rows of equal numbers, which run from 0 without a gap."""
        return cls._of(
            np.asarray(numbers), scipy.sparse.csr_array(scipy.sparse.identity(int(numbers.max()) + 1, dtype=np.float32))
        )

    @classmethod
    def _of(cls, set_of: IntArray, sets: scipy.sparse.csr_array) -> RelatedRows:
        n_sets = sets.shape[0]
        counts = np.bincount(set_of, minlength=n_sets)
        n_related = np.zeros(n_sets, dtype=np.intp)
        # A product of full matrices is many times as fast as of sparse ones, where marks are few.
        marks = sets.toarray() if sets.shape[1] <= _MOST_MARKS_IN_FULL else sets
        for block in row_blocks(n_sets, _BLOCK_SETS):
            n_related[block] = (marks[block] @ marks.T > 0).astype(np.intp) @ counts
        related = cls(set_of, sets, (len(set_of) - n_related)[set_of])
        if not related.n_unrelated[related.known].any():
            raise InvalidInputError(
                "every two rows answer each other: there is nothing to rank below the right answers"
            )
        return related

    @property
    def known(self) -> IntArray:
        """The rows that have a mark."""
        return np.flatnonzero(np.diff(self.sets.indptr)[self.set_of])

    def matrix(self, rows: IntArray, others: IntArray) -> BoolArray:
        """Return whether each of ``rows`` is related to each of ``others``."""
        if self._dense is not None:
            return np.asarray(self._dense[self.set_of[rows]] @ self._dense[self.set_of[others]].T > 0)
        shared = self.sets[self.set_of[rows]] @ self.sets[self.set_of[others]].T
        return np.asarray(shared.toarray() > 0)

    def pairs(self, rows: IntArray, others: IntArray) -> BoolArray:
        """Return whether each of ``rows`` is related to the one of ``others`` in its place."""
        shared = self.sets[self.set_of[rows]].multiply(self.sets[self.set_of[others]])
        return np.asarray(shared.sum(axis=1) > 0)

    def partners(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Return for each row one that is related to it, maybe itself.

        One of the row's marks is drawn evenly and then one of the mark's rows, so that rare marks count as much as
        frequent ones.
        """
        marks = draw_of_groups(self.sets.indices, self.sets.indptr, self.set_of[rows], rng)
        return draw_of_groups(self._members.indices, self._members.indptr, marks, rng)

    @cached_property
    def _dense(self) -> FloatArray | None:
        """The sets in full, where marks are few."""
        return np.asarray(self.sets.toarray()) if self.sets.shape[1] <= _MOST_MARKS_IN_FULL else None

    @cached_property
    def _members(self) -> scipy.sparse.csr_array:
        """The rows of each mark."""
        return scipy.sparse.csr_array(self.sets[self.set_of].T)


def draw_of_groups(values: IntArray, starts: IntArray, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Return one of the values of each group, evenly; ``starts`` says where each group's values begin."""
    sizes = starts[groups + 1] - starts[groups]
    return np.asarray(values[starts[groups] + (rng.random(len(groups)) * sizes).astype(np.intp)], dtype=np.intp)


_ATTEMPTS = 20


def draw_until_right(
    count: int, n_choices: int, is_wrong: Callable[[IntArray], BoolArray], rng: np.random.Generator
) -> tuple[IntArray, BoolArray]:
    """Return ``count`` even draws out of ``n_choices``, and which of them are wrong even after some more attempts."""
    drawn = rng.integers(n_choices, size=count)
    wrong = is_wrong(drawn)
    for _ in range(_ATTEMPTS):
        if not wrong.any():
            break
        drawn[wrong] = rng.integers(n_choices, size=int(wrong.sum()))
        wrong = is_wrong(drawn)
    return drawn, wrong


def picture_numbers(images: FloatArray) -> IntArray:
    """Return the number of each row's picture, from 0 in the order they first appear; equal rows are one picture.

    A picture with several texts stands in several rows, and none of its texts is a wrong answer to it.
    """
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in images], dtype=np.intp)
