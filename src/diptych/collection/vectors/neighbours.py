"""The nearest points of queries: what every engine of vectors shares, and exact comparison with all points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.retriever_protocol import PointKind
from diptych.collection.store.dialect import Connection
from diptych.collection.store.points import last_point, point_blocks, points_with, read_points
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store

MAX_EXACT_IDS = 20_000
"""Up to so many allowed contents, their points are read by id instead of all points."""

OVERFETCH = 3
MAX_OVERFETCH = 100

Effort = Literal["quick", "thorough", "exact"]
Score = Callable[[slice, AnyArray], FloatArray]
"""Returns the scores of some queries, given by their places, and stored rows."""
PointBlock = tuple[IntArray, IntArray, IntArray, AnyArray]
"""Ids, contents, parts and vectors of some points."""


class Neighbours(NamedTuple):
    """Contents by query, best first, −1 where there are fewer; the part that scored best, and its score."""

    contents: IntArray
    parts: IntArray
    scores: FloatArray


@dataclass(frozen=True)
class IndexStatus:
    """What an index covers: points up to an id. ``recall`` is measured when it is built; 1 where all are compared."""

    points: int
    indexed: int
    covered: int
    kind: str
    recall: float


class VectorIndex:
    """The points of a model's side, searched by queries. The scores come from the stored rows, whatever found them."""

    def __init__(self, store: Store, model: int, side: PointKind, scoring: Scoring) -> None:
        self.store = store
        self.model = model
        self.side: PointKind = side
        self.scoring = scoring

    def nearest(
        self, db: Connection, queries: AnyArray, k: int, allowed: BoolArray | None = None, *, exact: bool = False
    ) -> Neighbours:
        """Return the ``k`` nearest contents of each query, ties by content id.

        Queries are prepared by :meth:`Scoring.query_vectors`; ``allowed`` marks the content ids that may be returned.
        ``exact`` compares all points, as spaces without an index always do.
        """

        def score(some: slice, stored: AnyArray) -> FloatArray:
            return self.scoring.scores(queries[some], stored)

        if self.scoring.metric is None:
            return self.nearest_by(db, score, k, allowed, n_queries=len(queries))
        wanted = max(min(OVERFETCH * k, k + MAX_OVERFETCH), 0 if exact else self._min_candidates(db))
        effort: Effort = "exact" if exact else "quick"
        while True:
            ids, is_complete = self._candidates(db, queries, wanted, allowed, effort)
            found = self._scored(db, score, k, ids, allowed)
            if is_complete or (found.contents >= 0).all():
                return found
            if effort == "quick" and (ids.shape[1] < wanted or (ids < 0).any()):
                effort = "thorough"
            # Points that are gone, or many regions of one picture, take the places of others.
            wanted *= 4

    def compares_all(self, db: Connection, n_allowed: int) -> bool:
        """Return True if a search among so many allowed contents compares all of their points."""
        return self.scoring.metric is None or n_allowed <= MAX_EXACT_IDS

    def nearest_by(
        self,
        db: Connection,
        score: Score,
        k: int,
        allowed: BoolArray | None = None,
        *,
        n_queries: int = 1,
    ) -> Neighbours:
        """Return the ``k`` contents with the best scores among all points."""
        best_ids, best_scores, wanted = None, None, OVERFETCH * k
        while True:
            n_points = 0
            for ids, _, _, vectors in self._all_blocks(db, allowed):
                if not len(ids):
                    continue
                n_points += len(ids)
                scores = score(slice(n_queries), vectors)
                numbers = np.broadcast_to(ids, scores.shape)
                if best_ids is not None and best_scores is not None:
                    numbers, scores = np.hstack([best_ids, numbers]), np.hstack([best_scores, scores])
                best_ids, best_scores = _best(numbers, scores, wanted)
            if best_ids is None:
                return _nothing(n_queries, k)
            found = self._scored(db, score, k, best_ids, allowed)
            if wanted >= n_points or (found.contents >= 0).all():
                return found
            best_ids, wanted = None, 4 * wanted

    def vectors(
        self, db: Connection, contents: Sequence[int] | IntArray, parts: Sequence[int] | IntArray | None = None
    ) -> tuple[IntArray, IntArray, AnyArray]:
        """Return (contents, parts, vectors) of the stored points of some contents, or of some of their parts."""
        found = read_points(db, self.model, self.side, contents)
        if parts is None:
            return found
        wanted = set(zip(np.asarray(contents).tolist(), np.asarray(parts).tolist(), strict=True))
        kept = [pair in wanted for pair in zip(found[0].tolist(), found[1].tolist(), strict=True)]
        return found[0][kept], found[1][kept], found[2][kept]

    def build(self) -> None:
        """Build the index anew over all points. It may take minutes; searches go on."""
        raise NotImplementedError

    def catch_up(self) -> None:
        """Build the index where many points are newer, as searches do in the background; problems are only logged.

        What ends soon calls it before, as its background does not outlive it.
        """
        raise NotImplementedError

    def status(self, db: Connection) -> IndexStatus:
        """Return what the index covers."""
        raise NotImplementedError

    def _example_queries(self, db: Connection, count: int) -> AnyArray:
        """Return stored points as examples of what is asked: cosines are asked by points of the other side as well."""
        sides: list[PointKind] = [self.side]
        if self.scoring.is_cosine:
            sides.insert(0, "image" if self.side == "text" else "text")
        rng, found = np.random.default_rng(0), []
        for side in sides:
            ids = 1 + rng.integers(0, last_point(db, self.model, side) or 1, count // len(sides))
            found.append(points_with(db, self.model, side, ids)[3])
        return np.concatenate([points for points in found if len(points)])

    def _min_candidates(self, db: Connection) -> int:
        """Return how many candidates of an index are compared by their stored rows at least."""
        return 0

    def _candidates(
        self, db: Connection, queries: AnyArray, wanted: int, allowed: BoolArray | None, effort: Effort
    ) -> tuple[IntArray, bool]:
        """Return about ``wanted`` ids of near points for each query, −1 padded, and True if there are no more.

        With effort ``thorough`` as many come as there are; ``exact`` compares all points besides.
        """
        raise NotImplementedError

    def _all_blocks(self, db: Connection, allowed: BoolArray | None) -> Iterator[PointBlock]:
        """Yield the points of allowed contents."""
        if allowed is not None and np.count_nonzero(allowed) <= MAX_EXACT_IDS:
            yield points_with(db, self.model, self.side, np.flatnonzero(allowed), "content")
            return
        for ids, contents, parts, vectors in point_blocks(db, self.model, self.side):
            if allowed is None:
                yield ids, contents, parts, vectors
            else:
                chosen = allowed_rows(allowed, contents)
                yield ids[chosen], contents[chosen], parts[chosen], vectors[chosen]

    def _scored(
        self,
        db: Connection,
        score: Score,
        k: int,
        candidates: IntArray,
        allowed: BoolArray | None,
    ) -> Neighbours:
        """Return the best candidates by the scores of their stored rows; each content once, by its best part."""
        ids, contents, parts, vectors = points_with(db, self.model, self.side, candidates[candidates >= 0])
        result = _nothing(len(candidates), k)
        if not len(ids):
            return result
        # Of a point that was replaced since, the index may know another content.
        usable = np.ones(len(ids), dtype=bool) if allowed is None else allowed_rows(allowed, contents)
        for number, asked in enumerate(candidates):
            places = np.minimum(np.searchsorted(ids, asked), len(ids) - 1)
            places = np.unique(places[(ids[places] == asked) & usable[places]])
            if not len(places):
                continue
            scores = score(slice(number, number + 1), vectors[places])[0]
            order = np.lexsort((parts[places], contents[places], -scores))
            order = order[np.sort(np.unique(contents[places][order], return_index=True)[1])[:k]]
            result.contents[number, : len(order)] = contents[places][order]
            result.parts[number, : len(order)] = parts[places][order]
            result.scores[number, : len(order)] = scores[order]
        return result


def allowed_rows(allowed: BoolArray, contents: IntArray) -> BoolArray:
    """Return which rows have an allowed content; contents that are newer than the mask are not allowed."""
    if not len(allowed):
        return np.zeros(len(contents), dtype=bool)
    chosen = allowed.take(contents, mode="clip")
    if len(contents) and contents.max() >= len(allowed):
        chosen &= contents < len(allowed)
    return chosen


def _best(ids: IntArray, scores: FloatArray, wanted: int) -> tuple[IntArray, FloatArray]:
    """Return the ``wanted`` best columns of each row, best first, ties by the order of columns."""
    if scores.shape[1] > wanted:
        # All that are as good as the last one stay for the stable order.
        limits = np.partition(scores, scores.shape[1] - wanted, axis=1)[:, -wanted]
        columns = [np.flatnonzero(row >= limit) for row, limit in zip(scores, limits, strict=True)]
    else:
        columns = [np.arange(scores.shape[1])] * len(scores)
    order = [one[np.argsort(-row[one], kind="stable")][:wanted] for one, row in zip(columns, scores, strict=True)]
    places = np.array(order, dtype=np.int64).reshape(len(scores), -1)
    return np.take_along_axis(np.asarray(ids), places, axis=1), np.take_along_axis(scores, places, axis=1)


def _nothing(n_queries: int, k: int) -> Neighbours:
    numbers = np.full((n_queries, k), -1, dtype=np.int64)
    return Neighbours(numbers, np.zeros_like(numbers), np.full((n_queries, k), -np.inf, dtype=np.float64))
