"""Tie groups from binary codes, by histograms of distances."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, IntArray
from diptych.errors import InvalidInputError
from diptych.metrics.ranked_groups import RankedGroups
from diptych.metrics.relevance import Judgement, Relevance
from diptych.metrics.sorted_ranking import level_counts, ranked_items

_CHUNK = 1 << 16
_BYTE_MAX = 255


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
        for name, codes in (("queries", queries), ("gallery", gallery)):
            if codes.dtype != np.uint8:
                raise InvalidInputError(f"{name} must be packed uint8 codes (np.packbits), got {codes.dtype}")
        if queries.shape[1] != gallery.shape[1]:
            raise InvalidInputError(
                f"codes of one space have one width, got {queries.shape[1]} and {gallery.shape[1]} bytes"
            )
        self.bits = 8 * gallery.shape[1]
        self._queries, self._gallery = _as_words(queries), _as_words(gallery)
        self._relevance = relevance
        self._distances = np.empty(len(gallery), dtype=np.uint8 if self.bits <= _BYTE_MAX else np.uint16)

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
        for start in range(0, len(self._gallery), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            distances = self._distances[chunk]
            np.bitwise_count(self._gallery[chunk, 0] ^ code[0], out=distances, casting="unsafe")
            for word in range(1, len(code)):
                np.add(distances, np.bitwise_count(self._gallery[chunk, word] ^ code[word]), out=distances)

    def _count(self, items: IntArray | None) -> IntArray:
        distances = self._distances if items is None else self._distances[items]
        return count_small(distances, self.bits + 1)

    def _count_relevant(self, judgement: Judgement, n_levels: int) -> IntArray:
        if judgement.levels is None:
            return self._count(judgement.items)[:, None]
        keys = self._distances[judgement.items].astype(np.int64) * n_levels + judgement.levels
        return np.bincount(keys, minlength=(self.bits + 1) * n_levels).reshape(-1, n_levels)


def count_small(values: NDArray[Any], n_values: int) -> IntArray:
    """Return the histogram of ``values`` in 0 … ``n_values`` − 1.

    Bytes are counted in pairs: one count per 16-bit word halves the work, and its two bytes are folded afterwards.
    """
    if values.dtype != np.uint8 or len(values) < _CHUNK or not values.flags.c_contiguous:
        return np.bincount(values, minlength=n_values)
    even = len(values) // 2 * 2
    pairs = np.zeros(1 << 16, dtype=np.int64)
    words = values[:even].view(np.uint16)
    for start in range(0, len(words), _CHUNK):
        counts = np.bincount(words[start : start + _CHUNK])
        pairs[: len(counts)] += counts
    table = pairs.reshape(256, 256)
    folded = table.sum(axis=0) + table.sum(axis=1) + np.bincount(values[even:], minlength=256)
    return cast(IntArray, folded[:n_values])


def _as_words(codes: AnyArray) -> NDArray[Any]:
    """View rows of bytes as rows of the widest integers, padded with zero bits where their width asks for it."""
    width = codes.shape[1]
    word = next((size for size in (1, 2, 4) if width <= size), 8)
    padded = -(-width // word) * word
    if padded != width:
        codes = np.pad(codes, ((0, 0), (0, padded - width)))
    return np.ascontiguousarray(codes).view(f"u{word}")
