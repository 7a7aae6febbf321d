"""Rankings of binary codes by histograms of distances, and what lies within a Hamming radius of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.codes.distances import as_codes, hamming_distances
from diptych.errors import InvalidInputError
from diptych.metrics.measure import CurvePoints, RankedGroups
from diptych.metrics.relevance import Relevance
from diptych.metrics.score_ranking import check_points, count_ranked_items, grade_counts

NothingFound = Literal["zero", "skip"]
BLOCK_ENTRIES = 1 << 20


class HammingRanking:
    """Ranks a gallery of packed ``uint8`` codes for queries, without sorting and without floating point.

    Codes of b bits have b + 1 distances, so a ranking is two histograms: of all items and of the relevant ones.
    """

    def __init__(self, queries: AnyArray, gallery: AnyArray, relevance: Relevance) -> None:
        queries = as_codes(queries, name="queries")
        gallery = as_codes(gallery, name="gallery", width=queries.shape[1])
        self.bits = 8 * gallery.shape[1]
        self._queries, self._gallery, self._relevance = queries, gallery, relevance

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
            total=np.array([grade_counts(judgement, n_levels) for judgement in judgements]),
            gallery=np.array([count_ranked_items(judgement, self._relevance) for judgement in judgements]),
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
            distances = hamming_distances(self._queries[query : query + 1], self._gallery)[0]
            candidates = distances if judgement.candidates is None else distances[judgement.candidates]
            everything[row] = np.bincount(candidates, minlength=self.bits + 1)
            keys = distances[judgement.items].astype(np.int64) * n_levels
            if judgement.levels is not None:
                keys += judgement.levels
            relevant[row] = np.bincount(keys, minlength=(self.bits + 1) * n_levels).reshape(-1, n_levels)
        return everything, relevant


@dataclass(frozen=True, eq=False)
class HammingLookup:
    """For every query and radius r = 0 … ``n_bits``: how many items lie within it, and how many are relevant.

    This is retrieval by hash table instead of by ranking: opening the buckets within radius r gives all items
    there and no order among them, so that no tie has to be broken. A small radius may hold nothing at all.
    ``retrieved`` and ``found`` are counts, queries × radii; ``n_relevant`` is the number of relevant items of each
    query. Queries without relevant items count nowhere, as in `evaluate`.

    >>> import numpy as np
    >>> from diptych.metrics import HammingLookup, SameLabel
    >>> codes = np.array([[0b1111], [0b1110], [0b0000]], dtype=np.uint8) << 4
    >>> lookup = HammingLookup.from_codes(codes[:1], codes, SameLabel(["cat"], ["cat", "dog", "cat"]), n_bits=4)
    >>> lookup.retrieved.tolist(), lookup.found.tolist()
    ([[1, 2, 2, 2, 3]], [[1, 1, 1, 1, 2]])
    >>> lookup.precision(2), lookup.recall(2)
    (0.5, 0.5)
    """

    n_bits: int
    retrieved: IntArray
    found: IntArray
    n_relevant: IntArray

    @classmethod
    def from_codes(
        cls, queries: AnyArray, gallery: AnyArray, relevance: Relevance, n_bits: int | None = None
    ) -> HammingLookup:
        """Count for packed ``uint8`` codes; ``n_bits`` is their length where the last byte is padded."""
        queries, gallery = np.asarray(queries), np.asarray(gallery)
        check_points(queries, gallery, n_queries=relevance.n_queries, n_gallery=relevance.n_gallery)
        ranking = HammingRanking(queries, gallery, relevance)
        n_bits = ranking.bits if n_bits is None else n_bits
        if not 0 < n_bits <= ranking.bits:
            raise InvalidInputError(f"codes of {gallery.shape[1]} bytes hold 1 to {ranking.bits} bits, not {n_bits}")
        retrieved = np.empty((len(queries), n_bits + 1), dtype=np.int64)
        found = np.empty_like(retrieved)
        for rows in row_blocks(len(queries), max(1, BLOCK_ENTRIES // (ranking.bits + 1))):
            everything, relevant = ranking.histograms(rows)
            retrieved[rows] = np.cumsum(everything, axis=1)[:, : n_bits + 1]
            found[rows] = np.cumsum(relevant.sum(axis=2), axis=1)[:, : n_bits + 1]
        return cls(n_bits, retrieved, found, found[:, -1])

    def precision(self, radius: int, *, nothing: NothingFound = "zero") -> float:
        """Return the mean share of relevant items within ``radius``, 2 in most of the literature.

        A query that finds no item at all counts as 0 with ``nothing="zero"``, the honest choice, and is left out with
        ``"skip"``, which flatters long codes: they answer few queries, and those well.
        """
        return float(np.nanmean(self.precision_values(radius, nothing=nothing)))

    def precision_values(self, radius: int, *, nothing: NothingFound = "zero") -> FloatArray:
        """Return the precision of each query; NaN where it is left out."""
        if nothing not in get_args(NothingFound):
            raise InvalidInputError(f"nothing must be one of {', '.join(get_args(NothingFound))}, got {nothing!r}")
        retrieved, found = self._within(radius)
        values = found / np.maximum(retrieved, 1)
        counted = self._counted & ((retrieved > 0) | (nothing == "zero"))
        if not counted.any():
            raise InvalidInputError(f"no query finds anything within radius {radius}; take a larger one, or count zero")
        return np.where(counted, values, np.nan)

    def recall(self, radius: int) -> float:
        """Return the mean share of a query's relevant items that lie within ``radius``."""
        _, found = self._within(radius)
        return float(np.mean(found[self._counted] / self.n_relevant[self._counted]))

    def unanswered(self, radius: int) -> float:
        """Return the share of queries that find no item within ``radius``."""
        retrieved, _ = self._within(radius)
        return float(np.mean(retrieved[self._counted] == 0))

    def micro_curve(self) -> CurvePoints:
        """Return precision and recall of all queries' answers thrown together, a point for each radius.

        This is the precision–recall curve of the hashing literature: hits of all queries over answers of all queries.
        A radius within which no query finds anything has precision 0. Where the pictures and the texts of the same
        pairs ask for each other, both directions look at the same couples and have the same curve.
        """
        retrieved, found = self.retrieved[self._counted].sum(axis=0), self.found[self._counted].sum(axis=0)
        precision = found / np.maximum(retrieved, 1)
        return CurvePoints(found / self.n_relevant[self._counted].sum(), precision, "recall", "precision")

    def mean_curve(self, *, nothing: NothingFound = "zero") -> CurvePoints:
        """Return mean precision against mean recall, every query weighing the same, a point for each radius.

        Under ``"skip"`` a radius within which no query finds anything is left out.
        """
        radii = [radius for radius in range(self.n_bits + 1) if nothing == "zero" or self.unanswered(radius) < 1]
        recall = np.array([self.recall(radius) for radius in radii])
        precision = np.array([self.precision(radius, nothing=nothing) for radius in radii])
        return CurvePoints(recall, precision, "recall", "precision")

    @property
    def _counted(self) -> BoolArray:
        counted = np.asarray(self.n_relevant > 0)
        if not counted.any():
            raise InvalidInputError("no query has a relevant item in the gallery; check that both use the same labels")
        return counted

    def _within(self, radius: int) -> tuple[IntArray, IntArray]:
        if not 0 <= radius <= self.n_bits:
            raise InvalidInputError(f"codes of {self.n_bits} bits have radii 0 to {self.n_bits}, not {radius}")
        return self.retrieved[:, radius], self.found[:, radius]
