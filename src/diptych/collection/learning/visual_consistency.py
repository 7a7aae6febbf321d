"""A test of whether the clicks of a log depend on what the pictures show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse
from scipy.stats import norm

from diptych.arrays import FloatArray, row_blocks
from diptych.collection.learning.search_log import Evidence
from diptych.models.clicks.query_memory import ClickMixture, certainty

N_SHUFFLES = 999
SHUFFLES_AT_A_TIME = 20
MAX_QUERIES = 500
MAX_PICTURES = 24
MIN_PICTURES = 5
MIN_CLICKS = 2.0


@dataclass(frozen=True)
class VisualConsistencyTest:
    """A permutation test: do the pictures that people want for a query look alike, and score high?

    Without it, consistent whims would be learned: people who come back for the same picture improve the measured gain,
    but say nothing about any other picture. ``z`` is how far the log lies from shuffled ones, in standard deviations,
    ``p_value`` the one-sided probability of that, ``n_queries`` how many queries were tested.
    """

    z: float
    p_value: float
    n_queries: int

    @classmethod
    def run(
        cls,
        seen: Evidence,
        points: FloatArray,
        scores: FloatArray,
        words: Sequence[Collection[str]],
        *,
        within_queries: bool = False,
    ) -> Self:
        """Test the pictures of a log, given their points, their scores by the search model, and the queries' words.

        Let r say how much likelier each picture is wanted than the others of its query (`ClickMixture`), X be the
        centred points of a query's pictures, and s their scores less the usual score at their places. Three sums are
        computed and added, each in its own standard deviations:

        - Σ_q rᵀXXᵀr without its diagonal: wanted pictures of one query are alike (kernel-target alignment, Cristianini
          et al., 2001);
        - Σ_q rᵀs: wanted pictures score high;
        - Σ_qq′ J(q, q′) rᵀXX′ᵀr′: wanted pictures of queries with common words are alike, J being the Jaccard
          similarity of the words.

        The null hypothesis is that clicks do not depend on the seen. Then r of one query could as well be that of
        another, place by place, so r is shuffled among the queries. ``within_queries`` shuffles it among the pictures
        of each query instead, for logs that tell no positions.
        """
        wanted, points, scores, shared_words = _tables(seen, points, scores, words)
        if len(wanted) < 2:
            return cls(0.0, 1.0, len(wanted))
        rng = np.random.default_rng(0)
        found = np.empty((N_SHUFFLES + 1, 3))
        own = np.einsum("qid,qid->qi", points, points)
        for block in row_blocks(len(found), SHUFFLES_AT_A_TIME):
            shuffled = np.repeat(wanted[:, None], block.stop - block.start, axis=1)
            # The first row is the log itself, not shuffled.
            for number in range(0 if block.start else 1, shuffled.shape[1]):
                shuffled[:, number] = rng.permuted(wanted, axis=1) if within_queries else rng.permutation(wanted)
            sums = shuffled.astype(np.float32) @ points
            mixed = (shared_words @ sums.reshape(len(sums), -1)).reshape(sums.shape)
            alike = (sums**2).sum(axis=(0, 2), dtype=np.float64) - (shuffled**2 * own[:, None]).sum(axis=(0, 2))
            high = (shuffled * scores[:, None]).sum(axis=(0, 2))
            found[block] = np.column_stack([alike, high, (sums * mixed).sum(axis=(0, 2), dtype=np.float64)])
        spread = found[1:].std(axis=0)
        standard = (found - found[1:].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        both = standard.sum(axis=1)
        z = float(both[0] / (both[1:].std() or 1.0))
        return cls(z, float(norm.sf(z)), len(wanted))


def _tables(
    seen: Evidence, all_points: FloatArray, all_scores: FloatArray, words: Sequence[Collection[str]]
) -> tuple[FloatArray, FloatArray, FloatArray, sparse.csr_array]:
    """Return r, points and scores of the queries with the most looks, and the similarity of the queries' words.

    r says how much likelier each picture is wanted than the others of its query, scaled by certainty. A row is a query,
    a column a place; empty places are zero.
    """
    clicks_of, looks_of = (np.bincount(seen.query_ids, each) for each in (seen.clicks, seen.looks))
    counts = np.bincount(seen.query_ids)
    chosen = np.flatnonzero((counts >= MIN_PICTURES) & (clicks_of >= MIN_CLICKS))
    chosen = chosen[np.argsort(-looks_of[chosen], kind="stable")[:MAX_QUERIES]]
    order = np.lexsort((seen.places, seen.query_ids))
    first = np.searchsorted(seen.query_ids[order], chosen)
    mixture = ClickMixture().fit(seen.clicks, seen.looks)
    likelier = mixture.surplus(seen.clicks, seen.looks, seen.query_ids)
    surplus = likelier * certainty(seen.clicks, seen.looks)
    wanted = np.zeros((len(chosen), MAX_PICTURES))
    scores, filled = np.zeros_like(wanted), np.zeros(wanted.shape, dtype=bool)
    points = np.zeros((*wanted.shape, all_points.shape[1]), dtype=np.float32)
    for row, (query, start) in enumerate(zip(chosen, first, strict=True)):
        own = order[start : start + min(int(counts[query]), MAX_PICTURES)]
        size = len(own)
        wanted[row, :size] = _unit(surplus[own] - surplus[own].mean())
        points[row, :size] = _unit(all_points[own] - all_points[own].mean(axis=0))
        scores[row, :size] = all_scores[own] - all_scores[own].mean()
        filled[row, :size] = True
    usual = scores.sum(axis=0) / np.maximum(filled.sum(axis=0), 1)
    unusual = np.where(filled, scores - usual, 0.0)
    standard = np.array([_unit(row) for row in unusual]).reshape(wanted.shape)
    return wanted, points, standard, _shared_words([set(words[query]) for query in chosen.tolist()])


def _shared_words(words: Sequence[set[str]]) -> sparse.csr_array:
    """Return the Jaccard similarities of sets of words as a sparse matrix, with an empty diagonal."""
    numbers = {word: number for number, word in enumerate(sorted(set().union(*words)))}
    columns = [numbers[word] for own in words for word in own]
    sizes = np.array([len(own) for own in words])
    ends = np.concatenate([[0], np.cumsum(sizes)])
    has = sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(words), len(numbers)))
    common = (has @ has.T).tocoo()
    rows, others = common.coords
    apart = rows != others
    rows, others, shared = rows[apart], others[apart], common.data[apart]
    values = (shared / (sizes[rows] + sizes[others] - shared)).astype(np.float32)
    return sparse.coo_array((values, (rows, others)), shape=common.shape).tocsr()


def _unit(values: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(values))
    return values / length if length > 0 else values
