"""Tie groups of large galleries on a graphics card: scores, sorts and searches there, groups here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, IntArray, row_blocks
from diptych.errors import InvalidInputError
from diptych.graphics_card import Card, as_array
from diptych.metrics.relevance import Judgement, Relevance
from diptych.metrics.score_ranking import count_ranked_items, first_of_equals, grade_counts
from diptych.metrics.tie_groups import RankedGroups
from diptych.space import IndexForm

# Scores that are on the card at once.
_SCORES_ON_CARD = 1 << 29
# Gallery points that are brought to the card at once.
_POINTS_AT_ONCE = 1 << 17


class CardRanking:
    """Ranks a gallery that lies on a card. Items with equal points always tie.

    Scores are those of the space to rounding, so items may change places only where their scores differ by rounding.
    """

    def __init__(self, card: Card, form: IndexForm, queries: AnyArray, gallery: AnyArray, relevance: Relevance) -> None:
        self._card, self._form, self._relevance = card, form, relevance
        places, originals = first_of_equals(gallery)
        repeated = len(places) < len(gallery)
        self._originals = card.tensor(originals) if repeated else None
        distinct = gallery[places] if repeated else gallery
        self._queries = self._placed(form.queries(queries))
        parts = (form.gallery(distinct[rows]) for rows in row_blocks(len(distinct), _POINTS_AT_ONCE))
        self._gallery = card.torch.cat([self._placed(part) for part in parts])

    def groups(self, most_groups: int) -> Iterator[RankedGroups]:
        """Yield the tie groups of consecutive queries, about ``most_groups`` at a time."""
        n_queries, n_items = self._relevance.n_queries, self._relevance.n_gallery
        at_once = max(1, most_groups // max(1, self._relevance.most))
        for block in row_blocks(n_queries, max(1, _SCORES_ON_CARD // n_items)):
            scores = self._scores(self._queries[block])
            for rows in row_blocks(len(scores), at_once):
                yield self._rank(scores[rows], block.start + rows.start)

    def _placed(self, points: AnyArray) -> Any:
        # The expansion of a distance cancels, which float32 cannot afford.
        return self._card.tensor(points.astype(np.float64) if self._form.metric == "l2" else points)

    def _scores(self, queries: Any) -> Any:
        scores = queries @ self._gallery.T
        if self._form.metric == "l2":
            scores = 2 * scores - (queries**2).sum(1)[:, None] - (self._gallery**2).sum(1)
        return scores if self._originals is None else scores[:, self._originals]

    def _rank(self, scores: Any, first_query: int) -> RankedGroups:
        rows = np.arange(first_query, first_query + len(scores))
        judgements = [self._relevance.judge(int(row)) for row in rows]
        scores = self._candidates_only(scores, judgements)
        ordered = self._card.torch.sort(scores, dim=1).values
        # NaN sorts last, so one look is enough.
        unknown = np.flatnonzero(as_array(ordered[:, -1].isnan()))
        if len(unknown):
            query = int(rows[unknown[0]])
            raise InvalidInputError(f"the scores of query {query} hold NaN; check its points for NaN or zero vectors")
        counts = np.array([len(judgement.items) for judgement in judgements])
        begin, end, order = self._found(scores, ordered, judgements, counts)
        return self._grouped(rows, judgements, counts, begin, end, order)

    def _candidates_only(self, scores: Any, judgements: list[Judgement]) -> Any:
        """Put items that are not ranked behind all others, where they change no number of better ones."""
        if all(judgement.candidates is None for judgement in judgements):
            return scores
        kept = self._card.torch.full_like(scores, -np.inf)
        for row, judgement in enumerate(judgements):
            ranked = slice(None) if judgement.candidates is None else self._card.tensor(judgement.candidates)
            kept[row, ranked] = scores[row, ranked]
        return kept

    def _found(
        self, scores: Any, ordered: Any, judgements: list[Judgement], counts: IntArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return where the scores of the relevant items begin and end in ``ordered``, best item first, and their order.

        Queries with fewer relevant items than others are filled up at the beginning of their rows.
        """
        torch, width = self._card.torch, max(1, int(counts.max(initial=0)))
        items = np.zeros((len(counts), width), dtype=np.int64)
        present = np.arange(width) < counts[:, None]
        items[present] = np.concatenate([judgement.items for judgement in judgements])
        found = scores.gather(1, self._card.tensor(items))
        found[~self._card.tensor(present)] = np.inf
        # A stable sort leaves what fills up behind items whose score is infinite, too.
        found, order = torch.sort(found, dim=1, stable=True)
        begin, end = (torch.searchsorted(ordered, found, right=right, out_int32=True) for right in (False, True))
        return as_array(begin)[:, ::-1], as_array(end)[:, ::-1], as_array(order)[:, ::-1]

    def _grouped(
        self,
        rows: IntArray,
        judgements: list[Judgement],
        counts: IntArray,
        begin: IntArray,
        end: IntArray,
        order: IntArray,
    ) -> RankedGroups:
        present = np.arange(begin.shape[1])[::-1] < counts[:, None]
        query, start, stop = np.repeat(np.arange(len(rows)), counts), begin[present], end[present]
        is_first = np.ones(len(query), dtype=bool)
        is_first[1:] = (query[1:] != query[:-1]) | (start[1:] != start[:-1])
        n_levels, n_groups = len(self._relevance.grades), int(is_first.sum())
        levels = np.zeros(len(query), dtype=np.int64)
        if n_levels > 1:
            graded = [
                np.zeros(len(judgement.items), dtype=np.int64) if judgement.levels is None else judgement.levels
                for judgement in judgements
            ]
            levels = np.concatenate([level[row[kept]] for level, row, kept in zip(graded, order, present, strict=True)])
        keys = (np.cumsum(is_first) - 1) * n_levels + levels
        return RankedGroups(
            query=query[is_first],
            before=self._relevance.n_gallery - stop[is_first].astype(np.int64),
            size=(stop - start)[is_first].astype(np.int64),
            relevant=np.bincount(keys, minlength=n_groups * n_levels).reshape(n_groups, n_levels),
            total=np.array([grade_counts(judgement, n_levels) for judgement in judgements]),
            gallery=np.array([count_ranked_items(judgement, self._relevance) for judgement in judgements]),
            grades=self._relevance.grades,
            rows=rows,
        )
