"""Normalised discounted cumulative gain with a named normaliser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.measure import Measure, check_cutoff, effective_cutoff
from diptych.metrics.tie_groups import RankedGroups

Normaliser = Literal["fixed", "printed", "ideal"]
PRINTED_CONSTANT = 0.01757
_PRINTED_FOR = (25, 3)


@dataclass(frozen=True)
class NDCG(Measure):
    """Discounted cumulative gain of graded relevance, normalised.

        NDCG@k = Z Σ_{i ≤ k} (2^relᵢ − 1) / log₂(i + 1)

    ``normaliser`` chooses Z:

    * ``fixed``: the reciprocal of a list of k items of ``max_grade``, the same for every query, so that a query with
      fewer such items cannot reach 1. For k = 25 and grade 3 it is 0.01756779;
    * ``printed``: 0.01757, the same constant as Dong et al. print it ("Cross-media similarity evaluation for web
      image retrieval in the wild", TMM 2018), for k = 25 and grade 3 only; a perfect list then scores 1.000126;
    * ``ideal``: the query's own best list, so that a perfect ranking scores 1 (Järvelin & Kekäläinen, TOIS 2002).
      Here ``cutoff`` may be None.

    Missing positions count 0. Under ties each position of a group has the group's mean gain (McSherry & Najork, ECIR
    2008). Use it for graded judgements: :class:`~diptych.metrics.GradedRelevance`.

    >>> from diptych.metrics import NDCG, GradedRelevance, evaluate_scores
    >>> relevance = GradedRelevance([[3, 2, 0]])
    >>> measures = [NDCG(2, "fixed"), NDCG(2, "ideal")]
    >>> [round(value, 4) for value in evaluate_scores([[0.9, 0.8, 0.7]], relevance, measures).mean.values()]
    [0.7789, 1.0]
    """

    cutoff: int | None = 25
    normaliser: Normaliser = "fixed"
    max_grade: float = 3

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            check_cutoff(self.cutoff)
        if self.normaliser not in get_args(Normaliser):
            raise InvalidInputError(
                f"normaliser must be one of {', '.join(get_args(Normaliser))}, got {self.normaliser!r}"
            )
        if self.cutoff is None and self.normaliser != "ideal":
            raise InvalidInputError(f"the {self.normaliser} normaliser needs a cutoff; pass one or use 'ideal'")
        if not self.max_grade > 0:
            raise InvalidInputError(f"max_grade must be positive, got {self.max_grade!r}")
        if self.normaliser == "printed" and (self.cutoff, self.max_grade) != _PRINTED_FOR:
            raise InvalidInputError(
                f"the printed constant {PRINTED_CONSTANT} holds for cutoff 25 and max_grade 3; use 'fixed' otherwise"
            )

    @property
    def label(self) -> str:
        """``NDCG@k`` with its normaliser."""
        return f"NDCG{'' if self.cutoff is None else f'@{self.cutoff}'} ({self.normaliser})"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        self._check_grades(groups.grades)
        cutoff = effective_cutoff(self.cutoff, groups)
        depth = max(int(cutoff.max()), self.cutoff or 0)
        # The sums of the first 0, 1, …, depth discounts.
        discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2.0, depth + 2)))])
        gain = np.exp2(groups.grades) - 1
        inside = groups.inside(cutoff)
        share = _discount_between(discounts, groups.before, inside) / groups.size
        achieved = groups.sum_by_query(groups.relevant @ gain * share)
        if self.normaliser == "printed":
            return achieved * PRINTED_CONSTANT
        if self.cutoff is not None and self.normaliser == "fixed":
            return cast(FloatArray, achieved / ((2**self.max_grade - 1) * discounts[self.cutoff]))
        return cast(FloatArray, achieved / _ideal(groups, cutoff, discounts, gain))

    def _check_grades(self, grades: FloatArray) -> None:
        if self.normaliser != "ideal" and len(grades) and grades[-1] > self.max_grade:
            raise InvalidInputError(
                f"grade {grades[-1]:g} exceeds max_grade {self.max_grade:g} of the {self.normaliser} normaliser; "
                "raise max_grade or use 'ideal'"
            )


def _discount_between(discounts: FloatArray, before: IntArray, count: IntArray) -> FloatArray:
    """Return the sum of ``count`` discounts after position ``before``; a single one without a subtraction."""
    start = np.minimum(before, len(discounts) - 1)
    several = discounts[np.minimum(before + count, len(discounts) - 1)] - discounts[start]
    return cast(FloatArray, np.where(count == 1, 1 / np.log2(before + 2.0), several))


def _ideal(groups: RankedGroups, cutoff: IntArray, discounts: FloatArray, gain: FloatArray) -> FloatArray:
    """Return the gain of each query's best list; 1 where nothing is relevant, where it is not used."""
    best = np.zeros(groups.n_queries)
    start = np.zeros(groups.n_queries, dtype=np.int64)
    for level in range(len(gain))[::-1]:
        end = np.minimum(start + groups.total[:, level], cutoff)
        best += gain[level] * (discounts[end] - discounts[start])
        start = end
    return cast(FloatArray, np.where(best > 0, best, 1.0))
