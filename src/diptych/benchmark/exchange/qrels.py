"""Judgements: which items are relevant to which query, and how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError
from diptych.metrics import Relevance


@dataclass(frozen=True)
class Qrels:
    """For each query the grades of judged items; what is not judged, or has a grade of 0 or less, is not relevant.

    >>> from diptych.benchmark.exchange import Qrels
    >>> from diptych.metrics import SameLabel
    >>> Qrels.from_relevance(SameLabel(["cat"], ["dog", "cat"]), ["q1"], ["a", "b"])
    Qrels(grades={'q1': {'b': 1}})
    """

    grades: Mapping[str, Mapping[str, int]]

    @classmethod
    def from_relevance(cls, relevance: Relevance, queries: Sequence[str], items: Sequence[str]) -> Qrels:
        """Write down a relevance by the names of its queries and items.

        Items that were judged and found irrelevant, as `GradedRelevance` knows them with ``judged_only``, get grade 0.
        """
        if (len(queries), len(items)) != (relevance.n_queries, relevance.n_gallery):
            raise InvalidInputError(
                f"the relevance knows {relevance.n_queries} queries and {relevance.n_gallery} items, "
                f"but {len(queries)} and {len(items)} names were given"
            )
        levels = _whole(relevance.grades)
        grades: dict[str, dict[str, int]] = {}
        for row, query in enumerate(queries):
            judged = relevance.judge(row)
            candidates = [] if judged.candidates is None else judged.candidates.tolist()
            own = {items[item]: 0 for item in candidates}
            positions = np.zeros(len(judged.items), dtype=np.int64) if judged.levels is None else judged.levels
            own.update({items[item]: levels[level] for item, level in zip(judged.items, positions, strict=True)})
            grades[query] = own
        return cls(grades)

    def at_least(self, grade: int) -> Qrels:
        """Return binary judgements in which ``grade`` and more is relevant, like trec_eval's option ``-l``."""
        return Qrels(
            {
                query: {item: int(given >= grade) for item, given in items.items()}
                for query, items in self.grades.items()
            }
        )

    @property
    def positive_grades(self) -> FloatArray:
        """The grades of relevant items, ascending."""
        found = {grade for items in self.grades.values() for grade in items.values() if grade > 0}
        if not found:
            raise InvalidInputError("no item is relevant to any query; check that the qrels are the right ones")
        return np.array(sorted(found), dtype=np.float64)


def _whole(grades: FloatArray) -> list[int]:
    if not (np.asarray(grades) == np.round(grades)).all():
        raise InvalidInputError(f"qrels hold whole grades, got {grades.tolist()}; round or rescale them")
    return [int(grade) for grade in grades]
