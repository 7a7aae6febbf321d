"""What every measure is: a value that turns rankings into one number per query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.ranked_groups import RankedGroups


class Measure(ABC):
    """A measure of a ranking, exact in expectation under ties.

    Measures are frozen dataclasses: equal parameters make equal measures, the representation is the identity, and
    ``label`` is what a table prints, with the convention in the name. A new measure defines ``label`` and
    ``_expectation`` and is then understood by :func:`diptych.metrics.evaluate`.

    >>> from diptych.metrics import AP
    >>> AP(cutoff=50, denominator="retrieved")
    AP(cutoff=50, denominator='retrieved')
    >>> AP(cutoff=50, denominator="retrieved").label
    'MAP@50 (retrieved)'
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """The name to print, with its convention."""

    @abstractmethod
    def _expectation(self, groups: RankedGroups) -> FloatArray:
        """Return one value per query; what stands for queries without relevant items is overwritten."""

    def compute(self, groups: RankedGroups) -> FloatArray:
        """Return one float64 per query, NaN where the query has no relevant item."""
        values = np.asarray(self._expectation(groups), dtype=np.float64)
        return np.where(groups.n_relevant > 0, values, np.nan)

    def worst(self, groups: RankedGroups) -> FloatArray:
        """Return the value per query that stands for "nothing relevant was found"."""
        return np.zeros(groups.n_queries)

    def aggregate(self, values: FloatArray) -> float:
        """Reduce values per query to one number: their mean, NaN left out."""
        return float(np.mean(_known(values)))

    def chance(self, tied: RankedGroups) -> float:
        """Return the exact value of a ranker that draws orders at random; ``tied`` has one group per query."""
        shapes, inverse = np.unique(np.column_stack([tied.gallery, tied.total]), axis=0, return_inverse=True)
        distinct = RankedGroups.all_tied(shapes[:, 1:], shapes[:, 0], tied.grades)
        values = self.compute(distinct)
        return self.aggregate(np.where(np.isnan(values), self.worst(distinct), values)[inverse.ravel()])


def _known(values: FloatArray) -> FloatArray:
    known = values[~np.isnan(values)]
    if not len(known):
        raise InvalidInputError("no query has a relevant item, so there is nothing to average; check the labels")
    return known


def check_cutoff(cutoff: object, *, name: str = "cutoff") -> None:
    """Raise an error unless ``cutoff`` is a whole number of at least 1."""
    if not isinstance(cutoff, int | np.integer) or isinstance(cutoff, bool) or cutoff < 1:
        raise InvalidInputError(f"{name} must be a whole number of at least 1, got {cutoff!r}")


def scope(cutoff: int | None, groups: RankedGroups) -> IntArray:
    """Return the cutoff of each query, which is never beyond its gallery."""
    if cutoff is None:
        return groups.gallery
    return cast(IntArray, np.minimum(groups.gallery, cutoff))
