"""Which training rows answer each other, when several do, and which show the same picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.errors import InvalidInputError

_BLOCK_SETS = 512
_MOST_IN_TABLE = 2048
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
        if self._is_partition:
            return np.asarray(self.set_of[rows][:, None] == self.set_of[others])
        if self._table is not None:
            return np.asarray(self._table[np.ix_(self.set_of[rows], self.set_of[others])])
        if self._dense is not None:
            return np.asarray(self._dense[self.set_of[rows]] @ self._dense[self.set_of[others]].T > 0)
        shared = self.sets[self.set_of[rows]] @ self.sets[self.set_of[others]].T
        return np.asarray(shared.toarray() > 0)

    def partners(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Return for each row one that is related to it, maybe itself.

        One of the row's marks is drawn evenly and then one of the mark's rows, so that rare marks count as much as
        frequent ones.
        """
        marks = draw_of_groups(self.sets.indices, self.sets.indptr, self.set_of[rows], rng)
        return draw_of_groups(self._members.indices, self._members.indptr, marks, rng)

    @cached_property
    def _is_partition(self) -> bool:
        """Whether every set has one mark that no other has, so that equal sets are all there is to ask."""
        return bool((np.diff(self.sets.indptr) == 1).all()) and len(np.unique(self.sets.indices)) == self.sets.nnz

    @cached_property
    def _table(self) -> BoolArray | None:
        """Which sets share a mark, where the sets are few enough to write that down."""
        if self.sets.shape[0] > _MOST_IN_TABLE:
            return None
        return np.asarray((self.sets @ self.sets.T).toarray() > 0)

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
