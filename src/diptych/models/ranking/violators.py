"""The search for a wrong answer that ranks too high, and what its cost says about the rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray, row_blocks
from diptych.models.ranking.linear_side import LinearSide
from diptych.models.ranking.ranking_step import RankingStep
from diptych.models.related_rows import RelatedRows

_BLOCK_COLUMNS = 256


@dataclass(frozen=True, eq=False)
class Violators:
    """For each query of a batch: the first wrong answer found within the margin, and the draws this took.

    ``draws`` counts wrong answers only, the last being the violator. Where none was ``found``, ``rows`` is meaningless.
    """

    rows: IntArray
    draws: IntArray
    found: BoolArray

    def ranks(self, n_wrong: IntArray) -> IntArray:
        """Return ⌊wrong answers / draws⌋, an estimate of how many are within the margin; 0 where none was found."""
        return np.where(self.found, n_wrong // np.maximum(self.draws, 1), 0)


def rank_losses(n_ranks: int) -> FloatArray:
    """Return L(k) = 1 + 1/2 + … + 1/k for k = 0 … ``n_ranks``: mistakes at the top cost most.

    >>> from diptych.models.ranking.violators import rank_losses
    >>> rank_losses(3).tolist()
    [0.0, 1.0, 1.5, 1.8333333333333333]
    """
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n_ranks + 1))])


def first_violators(
    points: FloatArray,
    thresholds: FloatArray,
    searched: LinearSide,
    related: RelatedRows,
    queries: IntArray,
    order: IntArray,
    max_draws: int | None = None,
) -> Violators:
    """Walk the rows in ``order``, the same for all queries, until each has met a wrong answer above its threshold.

    A random order is drawing without replacement. Right answers are passed over and cost nothing. A query gives up
    after ``max_draws`` wrong answers, or when there are no more.
    """
    rows, draws = np.zeros(len(queries), dtype=np.intp), np.zeros(len(queries), dtype=np.intp)
    found = np.zeros(len(queries), dtype=bool)
    open_queries = np.arange(len(queries))
    for block in row_blocks(len(order), _BLOCK_COLUMNS):
        if not len(open_queries):
            break
        candidates = order[block]
        wrong = ~related.matrix(queries[open_queries], candidates)
        drawn = draws[open_queries, None] + wrong.cumsum(axis=1)
        allowed = drawn <= (len(order) if max_draws is None else max_draws)
        scores = points[open_queries] @ searched.points(candidates).T
        violates = wrong & allowed & (scores > thresholds[open_queries, None])
        first, here = violates.argmax(axis=1), violates.any(axis=1)
        position = np.arange(len(open_queries))
        rows[open_queries] = candidates[first]
        draws[open_queries] = np.where(here, drawn[position, first], drawn[:, -1])
        found[open_queries] = here
        open_queries = open_queries[~here & allowed[:, -1]]
    return Violators(rows, draws, found)


def warp_step(
    asking: LinearSide,
    searched: LinearSide,
    related: RelatedRows,
    queries: IntArray,
    rng: np.random.Generator,
    *,
    margin: float,
    max_draws: int | None,
) -> RankingStep:
    """Return the mean of L(rank)·[margin − f(x, y⁺) + f(x, y⁻)]₊ over the queries and its slopes.

    y⁺ is a right answer drawn at random and y⁻ the first violator; L(rank) counts as a constant. A query without a
    violator costs nothing and moves nothing.
    """
    points, answers = asking.points(queries), related.partners(queries, rng)
    wanted = searched.points(answers)
    reached = np.einsum("ij,ij->i", points, wanted)
    order = rng.permutation(len(searched.rows))
    violators = first_violators(points, reached - margin, searched, related, queries, order, max_draws)
    n_wrong = related.n_unrelated[queries]
    weights = rank_losses(int(n_wrong.max(initial=0)))[violators.ranks(n_wrong)] / len(queries)
    wrong = searched.points(violators.rows)
    gaps = margin - reached + np.einsum("ij,ij->i", points, wrong)
    slopes = (weights[:, None] * points).astype(points.dtype)
    return RankingStep(
        float(np.where(violators.found, weights * gaps, 0).sum()),
        np.asarray(weights[:, None] * (wrong - wanted), dtype=points.dtype),
        np.concatenate([answers, violators.rows]),
        np.concatenate([-slopes, slopes]),
    )
