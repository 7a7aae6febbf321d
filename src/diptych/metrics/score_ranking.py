"""Tie groups from scores, a block of queries at a time: by one sort of values per query, here or on a graphics card."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.cluster import available_processors
from diptych.devices import Card, as_array
from diptych.errors import InvalidInputError
from diptych.metrics.measure import RankedGroups
from diptych.metrics.relevance import Judgement, Relevance
from diptych.space import Direction, IndexForm, Space

_SCORE_BYTES = 8
# Fewer are ranked before threads have begun.
_SCORES_FOR_THREADS = 1 << 19
# Scoring a tile holds a few temporaries of its size and a few copies of its points.
_TILE_BYTES = 6 * _SCORE_BYTES
# Scores that are on the card at once.
_SCORES_ON_CARD = 1 << 29
# Gallery points that are brought to the card at once.
_POINTS_AT_ONCE = 1 << 17


def ranked_blocks(
    scores: AnyArray, relevance: Relevance, first_query: int, queries_at_once: int
) -> Iterator[RankedGroups]:
    """Yield the tie groups of consecutive queries, given their scores against the gallery (larger is better).

    Values are sorted, not positions: the scores of the relevant items are then looked up, which gives the number of
    better and of equal items with exact ties, and costs a fraction of an argsort. While the caller measures some
    queries, other cores rank the next.
    """
    n_cores = available_processors()
    blocks = (
        (scores[rows], [relevance.judge(first_query + row) for row in range(rows.start, rows.stop)], rows.start)
        for rows in row_blocks(len(scores), queries_at_once)
    )
    if n_cores == 1 or scores.size < _SCORES_FOR_THREADS:
        yield from (_rank_all(block, judged, relevance, first_query + start) for block, judged, start in blocks)
        return
    with ThreadPoolExecutor(n_cores) as pool:
        ahead: deque[Future[RankedGroups]] = deque()
        for block, judged, start in blocks:
            ahead.append(pool.submit(_rank_all, block, judged, relevance, first_query + start))
            if len(ahead) > 2 * n_cores:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _rank_all(
    scores: AnyArray, judgements: Sequence[Judgement], relevance: Relevance, first_query: int
) -> RankedGroups:
    rows, n_levels = np.arange(first_query, first_query + len(scores)), len(relevance.grades)
    rankings = [
        _rank(row_scores, judgement, n_levels, query)
        for row_scores, judgement, query in zip(scores, judgements, rows.tolist(), strict=True)
    ]
    before, size, relevant = (np.concatenate(parts) for parts in zip(*rankings, strict=True))
    return RankedGroups(
        query=np.repeat(np.arange(len(rows)), [len(ranking[0]) for ranking in rankings]),
        before=before,
        size=size,
        relevant=relevant,
        total=np.array([grade_counts(judgement, n_levels) for judgement in judgements]),
        gallery=np.array([count_ranked_items(judgement, relevance) for judgement in judgements]),
        grades=relevance.grades,
        rows=rows,
    )


def grade_counts(judgement: Judgement, n_levels: int) -> IntArray:
    """Return how many relevant items a query has of each grade."""
    if judgement.levels is None:
        return np.array([len(judgement.items)])
    return np.bincount(judgement.levels, minlength=n_levels)


def count_ranked_items(judgement: Judgement, relevance: Relevance) -> int:
    """Return how many items are ranked for a query."""
    return relevance.n_gallery if judgement.candidates is None else len(judgement.candidates)


def _rank(scores: AnyArray, judgement: Judgement, n_levels: int, query: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return items before, size and relevant items by grade of the tie groups of one query, best first."""
    ordered = np.sort(scores if judgement.candidates is None else scores[judgement.candidates])
    # NaN sorts last, so one look is enough.
    if len(ordered) and np.isnan(ordered[-1]):
        raise InvalidInputError(f"the scores of query {query} hold NaN; check its points for NaN or zero vectors")
    found = scores[judgement.items]
    levels: IntArray
    if judgement.levels is None:
        found.sort()
        levels = np.zeros(len(found), dtype=np.int64)
    else:
        order = np.argsort(found)
        found, levels = found[order], judgement.levels[order]
    starts = _changes(found)
    distinct = found if starts.all() else found[starts]
    end = ordered.searchsorted(distinct, "right")
    begin = end - 1
    # A search costs more than the sort, and few items tie: the others begin where they end.
    tied = np.flatnonzero(ordered[begin - (begin > 0)] == distinct)
    begin[tied] = ordered.searchsorted(distinct[tied], "left")
    relevant = _count_levels(starts, levels, n_levels)
    return (len(ordered) - end)[::-1], (end - begin)[::-1], relevant[::-1]


def _changes(ordered: AnyArray) -> BoolArray:
    """Mark the entries that differ from the one before."""
    marks = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=marks[1:])
    return marks


def _count_levels(starts: BoolArray, levels: IntArray, n_levels: int) -> IntArray:
    """Count the items of each grade in each run that ``starts`` begins."""
    n_groups = int(starts.sum())
    if n_levels == 1 and n_groups == len(starts):
        return np.ones((n_groups, 1), dtype=np.int64)
    group = np.cumsum(starts) - 1
    counts = np.bincount(group * n_levels + levels, minlength=n_groups * n_levels)
    return counts.reshape(n_groups, n_levels)


def rank_classes(scores: FloatArray, codes: IntArray, n_classes: int, first_query: int) -> RankedGroups:
    """Return, from one sort per query, its tie groups with each class in turn as the relevant one.

    Row q·``n_classes`` + c of the result is query q with the items of class c relevant; ``codes`` are the classes of
    the gallery.
    """
    n_items = len(codes)
    totals = np.bincount(codes, minlength=n_classes)
    rankings = [_rank_by_class(row, codes, n_classes, first_query + query) for query, row in enumerate(scores)]
    return RankedGroups(
        query=np.concatenate([query * n_classes + ranking[0] for query, ranking in enumerate(rankings)]),
        before=np.concatenate([ranking[1] for ranking in rankings]),
        size=np.concatenate([ranking[2] for ranking in rankings]),
        relevant=np.concatenate([ranking[3] for ranking in rankings])[:, None],
        total=np.tile(totals, len(scores))[:, None],
        gallery=np.full(len(scores) * n_classes, n_items),
        grades=np.ones(1),
        rows=np.arange(len(scores) * n_classes),
    )


def _rank_by_class(
    scores: FloatArray, codes: IntArray, n_classes: int, query: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return class, items before, size and relevant items of every (class, tie group) that meets an item."""
    order = np.argsort(scores)[::-1]
    ordered = scores[order]
    if np.isnan(ordered[0]):
        raise InvalidInputError(f"the scores of query {query} hold NaN; check its points for NaN or zero vectors")
    starts = _changes(ordered)
    before = np.flatnonzero(starts)
    size = np.diff(before, append=len(ordered))
    group = np.cumsum(starts) - 1
    keys, hits = np.unique(codes[order].astype(np.int64) * len(before) + group, return_counts=True)
    owner, group = np.divmod(keys, len(before))
    return owner, before[group], size[group], cast(IntArray, hits)


def check_points(queries: AnyArray, gallery: AnyArray, *, n_queries: int, n_gallery: int) -> None:
    """Raise an error unless the points are matrices with as many rows as the relevance has queries and items."""
    for name, points, expected in (("queries", queries, n_queries), ("gallery", gallery, n_gallery)):
        if points.ndim != 2:
            raise InvalidInputError(f"{name} must be a matrix, one point per row, got {points.ndim} dimensions")
        if not len(points):
            raise InvalidInputError(f"{name} is empty; there is nothing to rank")
        if len(points) != expected:
            raise InvalidInputError(f"{name} has {len(points)} points, but the relevance knows {expected}")


def point_blocks(
    queries: AnyArray, gallery: AnyArray, space: Space, direction: Direction, *, rows: int, memory: int
) -> Iterator[AnyArray]:
    """Yield the scores of ``rows`` queries at a time, scored in tiles whose temporaries stay below ``memory`` bytes.

    Equal rows of the gallery are scored once: a product of matrices gives equal columns at different places sums that
    differ in the last bit, and then they would not tie.
    """
    places, originals = first_of_equals(gallery)
    repeated = len(places) < len(gallery)
    distinct = gallery[places] if repeated else gallery
    for block in row_blocks(len(queries), rows):
        scores = _score(queries[block], distinct, space, direction, memory)
        yield scores[:, originals] if repeated else scores


def first_of_equals(points: AnyArray) -> tuple[IntArray, IntArray]:
    """Return where each distinct row stands first, and for every row which of these it equals."""
    keys = np.zeros(len(points), dtype=np.uint64)
    factors = np.random.default_rng(0).integers(1 << 63, size=points.shape[1], dtype=np.uint64) * 2 + 1
    for block in row_blocks(len(points)):
        # Adding zero makes one of the two zeros.
        bits = (np.asarray(points[block], dtype=np.float64) + 0.0).view(np.uint64)
        keys[block] = ((bits ^ (bits >> 32)) * factors).sum(axis=1, dtype=np.uint64)
    _, places, originals = np.unique(keys, return_index=True, return_inverse=True)
    if len(places) < len(points) and not np.array_equal(points[places][originals], points, equal_nan=True):
        # Different rows with one key.
        _, places, originals = np.unique(points, axis=0, return_index=True, return_inverse=True)
    return places, originals.ravel()


def _score(queries: AnyArray, gallery: AnyArray, space: Space, direction: Direction, memory: int) -> AnyArray:
    width = gallery.shape[1]
    tile_rows = max(1, min(len(queries), memory // (4 * _TILE_BYTES * max(1, width))))
    columns = max(1, memory // (_TILE_BYTES * (tile_rows + width)))
    scores: AnyArray | None = None
    for row_tile in row_blocks(len(queries), tile_rows):
        for column_tile in row_blocks(len(gallery), columns):
            tile = space.compare(queries[row_tile], gallery[column_tile], direction)
            if tile.shape == (len(queries), len(gallery)):
                return tile
            if scores is None:
                scores = np.empty((len(queries), len(gallery)), dtype=tile.dtype)
            scores[row_tile, column_tile] = tile
    if scores is None:
        raise InvalidInputError("queries or gallery is empty; there is nothing to rank")
    return scores


def matrix_blocks(scores: ArrayLike | Iterable[ArrayLike], *, n_gallery: int, rows: int) -> Iterator[AnyArray]:
    """Yield ``rows`` queries at a time from a ready matrix of scores, or from an iterator over blocks of its rows."""
    given = scores if isinstance(scores, Iterator) else iter([scores])
    for part in given:
        matrix = np.asarray(part)
        _check_scores(matrix, n_gallery)
        for block in row_blocks(len(matrix), rows):
            yield matrix[block]


def _check_scores(matrix: AnyArray, n_gallery: int) -> None:
    if matrix.ndim != 2:
        raise InvalidInputError(
            f"scores must be a matrix, queries × gallery, got {matrix.ndim} dimensions; pass iter(blocks) for blocks"
        )
    if matrix.dtype.kind not in "biuf":
        raise InvalidInputError(f"scores must be real numbers, got dtype {matrix.dtype}")
    if matrix.shape[1] == 0:
        raise InvalidInputError("the gallery is empty; there is nothing to rank")
    if matrix.shape[1] != n_gallery:
        raise InvalidInputError(f"scores have {matrix.shape[1]} columns, but the relevance knows {n_gallery} items")


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
