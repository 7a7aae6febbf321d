"""Tie groups from binary codes, by histograms of distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, IntArray, row_blocks
from diptych.codes.distances import CHUNK, fill_distances
from diptych.codes.small_counts import count_small
from diptych.codes.words import as_codes, as_words, distance_type
from diptych.metrics.ranked_groups import RankedGroups
from diptych.metrics.relevance import Judgement, Relevance
from diptych.metrics.sorted_ranking import level_counts, ranked_items


class HammingRanking:
    """Ranks a gallery of packed ``uint8`` codes for queries, without sorting and without floating point.

    Codes of b bits have b + 1 distances, so a ranking is two histograms: of all items and of the relevant ones. Both
    sides are read through the widest integers that fit, and distances are counted a chunk of the gallery at a time.

    >>> import numpy as np
    >>> from diptych.metrics import AP, SameLabel
    >>> from diptych.metrics.hamming_ranking import HammingRanking
    >>> codes = np.array([[0b1111], [0b1110], [0b0000]], dtype=np.uint8)
    >>> ranking = HammingRanking(codes[:1], codes, SameLabel(["cat"], ["cat", "dog", "cat"]))
    >>> AP().compute(ranking.rank(slice(0, 1))).round(4)
    array([0.8333])
    """

    def __init__(self, queries: AnyArray, gallery: AnyArray, relevance: Relevance) -> None:
        queries = as_codes(queries, name="queries")
        gallery = as_codes(gallery, name="gallery", width=queries.shape[1])
        self.bits = 8 * gallery.shape[1]
        self._queries, self._gallery = as_words(queries), as_words(gallery)
        self._relevance = relevance
        self._distances = np.empty(len(gallery), dtype=distance_type(gallery.shape[1]))
        self._scratch = np.empty(min(CHUNK, len(gallery)), dtype=self._gallery.dtype)

    def rank(self, rows: slice) -> RankedGroups:
        """Return the tie groups of consecutive queries."""
        everything, relevant = self.histograms(rows)
        judgements = [self._relevance.judge(query) for query in range(rows.start, rows.stop)]
        n_levels = len(self._relevance.grades)
        query, distance = np.nonzero(relevant.any(axis=2))
        before = np.cumsum(everything, axis=1) - everything
        return RankedGroups(
            query=query,
            before=before[query, distance],
            size=everything[query, distance],
            relevant=relevant[query, distance],
            total=np.array([level_counts(judgement, n_levels) for judgement in judgements]),
            gallery=np.array([ranked_items(judgement, self._relevance) for judgement in judgements]),
            grades=self._relevance.grades,
            rows=np.arange(rows.start, rows.stop),
        )

    def histograms(self, rows: slice) -> tuple[IntArray, IntArray]:
        """Return, for each query and distance, the number of items and that of the relevant ones by grade."""
        queries = range(rows.start, rows.stop)
        n_levels = len(self._relevance.grades)
        everything = np.empty((len(queries), self.bits + 1), dtype=np.int64)
        relevant = np.empty((len(queries), self.bits + 1, n_levels), dtype=np.int64)
        for row, query in enumerate(queries):
            judgement = self._relevance.judge(query)
            self._measure(self._queries[query])
            everything[row] = self._count(judgement.candidates)
            relevant[row] = self._count_relevant(judgement, n_levels)
        return everything, relevant

    def _measure(self, code: NDArray[Any]) -> None:
        """Fill the distances of the whole gallery to one code."""
        for rows in row_blocks(len(self._gallery), CHUNK):
            part = self._gallery[rows]
            fill_distances(code, part, self._distances[rows], self._scratch[: len(part)])

    def _count(self, items: IntArray | None) -> IntArray:
        distances = self._distances if items is None else self._distances[items]
        return count_small(distances, self.bits + 1)

    def _count_relevant(self, judgement: Judgement, n_levels: int) -> IntArray:
        if judgement.levels is None:
            return self._count(judgement.items)[:, None]
        keys = self._distances[judgement.items].astype(np.int64) * n_levels + judgement.levels
        return np.bincount(keys, minlength=(self.bits + 1) * n_levels).reshape(-1, n_levels)
