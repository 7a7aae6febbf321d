"""Lists of items with grades from clicks, one for each query, to compare retrievers on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from diptych.arrays import AnyArray, FloatArray, IntArray, row_blocks
from diptych.collection.learning.corrected_clicks import CorrectedClicks
from diptych.metrics import GradedRelevance, Measure
from diptych.metrics.evaluator import evaluate_scores

Compare = Callable[[Sequence[str], AnyArray], FloatArray]

_QUERIES_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """Queries, the items each is judged on (rows of a matrix of features), and their grades.

    Only queries that can tell two retrievers apart are kept: some item is wanted and some is not.
    """

    queries: tuple[str, ...]
    rows: tuple[IntArray, ...]
    grades: tuple[FloatArray, ...]

    def __len__(self) -> int:
        return len(self.queries)

    @classmethod
    def of(cls, clicks: CorrectedClicks, row_of: IntArray, *, fillers: IntArray | None = None) -> JudgedLists:
        """Return the lists of what was shown for each query.

        ``row_of`` is the row of features of each item, −1 for one that has none. ``fillers`` are rows that join every
        list as not wanted, for clicks without a record of what else was shown.
        """
        known = clicks.select(row_of[clicks.item_ids] >= 0)
        order = np.argsort(known.query_ids, kind="stable")
        starts = np.flatnonzero(np.diff(known.query_ids[order], prepend=-1))
        queries, rows, grades = [], [], []
        for part in np.split(order, starts[1:]) if len(order) else []:
            own, own_grades = row_of[known.item_ids[part]], known.grades[part]
            if fillers is not None:
                more = np.setdiff1d(fillers, own)
                own, own_grades = np.append(own, more), np.append(own_grades, np.zeros(len(more)))
            if 0 < np.count_nonzero(own_grades) < len(own_grades):
                queries.append(known.queries[int(known.query_ids[part[0]])])
                rows.append(own)
                grades.append(own_grades)
        return cls(tuple(queries), tuple(rows), tuple(grades))

    def select(self, chosen: Sequence[int]) -> JudgedLists:
        """Return some of the lists."""
        return JudgedLists(
            tuple(self.queries[row] for row in chosen),
            tuple(self.rows[row] for row in chosen),
            tuple(self.grades[row] for row in chosen),
        )

    def scores(self, compare: Compare, features: AnyArray) -> list[FloatArray]:
        """Return the scores of each query's items, given what compares queries with rows of features."""
        found: list[FloatArray] = []
        for block in row_blocks(len(self), _QUERIES_AT_ONCE):
            used, places = np.unique(np.concatenate(self.rows[block]), return_inverse=True)
            compared = compare(self.queries[block], features[used])
            ends = np.cumsum([len(rows) for rows in self.rows[block]])
            parts = np.split(places.reshape(-1), ends[:-1])
            found += [compared[query, part] for query, part in enumerate(parts)]
        return found

    def values(self, scores: Sequence[FloatArray], measure: Measure) -> FloatArray:
        """Return the measure of each list under some scores."""
        widest = max(len(grades) for grades in self.grades)
        lengths = [len(grades) for grades in self.grades]
        padded = np.zeros((len(self), widest))
        for row, own in enumerate(scores):
            padded[row, : len(own)] = own
        columns = np.concatenate([np.arange(length) for length in lengths])
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        judged = sparse.csr_array((np.concatenate(self.grades), columns, indptr), shape=padded.shape)
        relevance = GradedRelevance(judged, judged_only=True)
        return evaluate_scores(padded, relevance, [measure]).values[measure]
