"""The points that are searched, in memory, how they are scored, and whatever index they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks, unit_rows
from diptych.codes import hamming_distances, nearest_codes
from diptych.collection.search.approximate_index import ApproximateIndex
from diptych.space import Direction, IndexForm, Space

_LINEAR = ("cosine", "pearson", "covariance", "dot")
_ENTRIES_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Scoring:
    """The scores of one space; in a *linear* one, inner products of vectors that the gallery keeps prepared."""

    space: Space
    direction: Direction

    @cached_property
    def is_linear(self) -> bool:
        """Whether scores are inner products of prepared vectors."""
        return self.space.name in _LINEAR and self.space.split is None

    @property
    def is_cosine(self) -> bool:
        """Whether scores are cosines, so that those of a combined query read like those of a single one."""
        return self.is_linear and self.space.name in ("cosine", "pearson")

    @property
    def index_metric(self) -> Literal["inner_product", "l2"] | None:
        """The metric of an approximate index, or None where only exact search serves the space."""
        if self.is_linear:
            return "inner_product"
        return "l2" if self.space.name == "euclidean" and self.space.split is None else None

    @property
    def is_hash_codes(self) -> bool:
        """Whether points are packed binary codes, compared by Hamming distance."""
        return self.space.name == "hamming" and self.space.split is None

    @property
    def is_symmetric(self) -> bool:
        """Whether a score is the same from whichever side is asked, so that one gallery serves both."""
        return self.index_metric is not None or self.is_hash_codes

    @cached_property
    def _form(self) -> IndexForm | None:
        return self.space.indexable(self.direction) if self.is_linear else None

    def stored(self, points: AnyArray) -> AnyArray:
        """Return gallery points as they are kept."""
        if points.dtype == np.uint8:
            return points
        kept = points if self._form is None else self._form.gallery(points)
        return np.ascontiguousarray(kept, dtype=np.float32)

    def query_vectors(self, points: AnyArray) -> AnyArray:
        """Return query points as they are compared with kept ones."""
        if self._form is None:
            return points
        return np.ascontiguousarray(self._form.queries(points), dtype=np.float32)

    def combined(self, queries: AnyArray, weights: FloatArray) -> FloatArray:
        """Return one query vector for several weighted terms of a linear space: along Σ wᵢ·uᵢ, all of unit length."""
        return np.asarray(unit_rows((weights @ unit_rows(queries))[None, :]), dtype=np.float32)

    def scores(self, queries: AnyArray, kept: AnyArray) -> FloatArray:
        """Return the (queries, kept rows) matrix of scores; the caller blocks the queries."""
        if self.is_linear:
            products = queries @ kept.T
            # Dividing by one would read and write every score once more.
            return np.asarray(products / kept.shape[-1] if self.space.name == "covariance" else products)
        if self.index_metric == "l2":
            return self._distances(queries, kept)
        if self.is_hash_codes:
            return -hamming_distances(queries, kept).astype(np.float32)
        return self.space.compare(queries, kept, self.direction)

    def paired_scores(self, queries: AnyArray, kept: AnyArray) -> FloatArray:
        """Return the scores of each query with its own rows: (queries, d) and (queries, k, d) give (queries, k)."""
        if self.is_linear:
            divisor = float(kept.shape[-1]) if self.space.name == "covariance" else 1.0
            return np.asarray(np.einsum("qd,qkd->qk", queries, kept) / divisor)
        return np.asarray(-((kept - queries[:, None, :]) ** 2).sum(axis=2, dtype=np.float64))

    @staticmethod
    def _distances(queries: AnyArray, kept: AnyArray) -> FloatArray:
        # Differences instead of the expansion |q|² − 2qg + |g|²: far from the origin float32 cannot afford that.
        scores = np.empty((len(queries), len(kept)))
        for rows in row_blocks(len(kept), _ENTRIES_AT_ONCE // (16 * max(1, kept.shape[1]))):
            for number, query in enumerate(queries):
                difference = kept[rows] - query
                scores[number, rows] = -np.einsum("gd,gd->g", difference, difference)
        return scores


def top_rows(scores: FloatArray, order: IntArray, k: int) -> IntArray:
    """Return the positions of the ``k`` largest scores, best first; equal scores by ``order``, smallest first.

    Scores of −∞ stand for what is left out and are never returned.

    >>> top_rows(np.array([1.0, 3.0, 3.0, -np.inf]), np.array([0, 2, 1, 3]), 3)
    array([2, 1, 0])
    """
    if k < len(scores):
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        above = np.flatnonzero(scores > threshold)
        equal = np.flatnonzero(scores == threshold)
        places = k - len(above)
        if len(equal) > places:
            equal = equal[np.argsort(order[equal], kind="stable")[:places]]
        rows = np.concatenate([above, equal])
    else:
        rows = np.arange(len(scores))
    rows = rows[scores[rows] > -np.inf]
    return np.asarray(rows[np.lexsort((order[rows], -scores[rows]))])


class GrowingMatrix:
    """A matrix with room at its end, so that appending rows costs the rows alone; earlier views stay valid.

    >>> matrix = GrowingMatrix(np.zeros((1, 2)))
    >>> first = matrix.rows
    >>> matrix.appended(np.ones((3, 2))).rows.sum(), len(first)
    (np.float64(6.0), 1)
    """

    def __init__(self, rows: AnyArray) -> None:
        self.rows = rows
        self._room: AnyArray = rows
        # Shared by all matrices in one room: how much of it is taken.
        self._taken = [len(rows)]

    def appended(self, block: AnyArray) -> GrowingMatrix:
        """Return the matrix with more rows; this one stays as it is."""
        start, stop = len(self.rows), len(self.rows) + len(block)
        grown = GrowingMatrix.__new__(GrowingMatrix)
        grown._room, grown._taken = self._room, self._taken
        if stop > len(self._room) or self._taken[0] != start:
            grown._room = np.empty((max(stop, 2 * start), *self.rows.shape[1:]), dtype=self.rows.dtype)
            grown._room[:start] = self.rows
            grown._taken = [start]
        grown._room[start:stop] = block
        grown._taken[0] = stop
        grown.rows = grown._room[:stop]
        return grown


Fetch = Callable[[Sequence[str]], Mapping[str, AnyArray]]
_SCORES_AT_ONCE = 1 << 24
_FEW_ROWS = 20_000
_OUTDATED_SHARE = 0.2
# Beyond this, sorting all scores is faster than keeping the best.
_MANY_NEAREST = 2000


@dataclass(frozen=True)
class Gallery:
    """The searched points of one side, by key; an update gives a new gallery and leaves this one to its readers.

    Rows are appended and marked dead, never moved. An index covers the rows it was built from; rows that came later are
    compared exactly beside it, dead ones are masked, so that every search sees exactly the live rows.
    """

    scoring: Scoring
    keys: tuple[str, ...] = ()
    hashes: tuple[str, ...] = ()
    row_of: Mapping[str, int] = field(default_factory=dict)
    points: GrowingMatrix | None = None
    order: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    live: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    index: ApproximateIndex | None = None
    indexed_rows: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.row_of)

    @property
    def vectors(self) -> AnyArray:
        """All rows, dead ones included."""
        return np.zeros((0, 0), dtype=np.float32) if self.points is None else self.points.rows

    @cached_property
    def key_array(self) -> AnyArray:
        """The keys of all rows, and an empty one for row −1."""
        return np.array([*self.keys, ""], dtype=object)

    def vector(self, key: str) -> AnyArray | None:
        """Return the kept point of a key as one row, or None."""
        row = self.row_of.get(key)
        return None if row is None else self.vectors[row : row + 1]

    def synchronised(self, wanted: Mapping[str, tuple[str, int]], fetch: Fetch) -> Gallery:
        """Return a gallery of the wanted keys (content hash, order); ``fetch`` gets the points of hashes, if it can."""
        return self.changed(self.row_of, wanted, fetch)

    def changed(self, keys: Iterable[str], wanted: Mapping[str, tuple[str, int]], fetch: Fetch) -> Gallery:
        """Return the gallery with these keys gone or changed, and the wanted ones as they should be."""
        gone = [self.row_of[key] for key in keys if key in self.row_of and not self._is_as(key, wanted.get(key))]
        new = [key for key, form in wanted.items() if not self._is_as(key, form)]
        if not gone and not new:
            return self
        fetched = fetch(list(dict.fromkeys(wanted[key][0] for key in new)))
        found = [key for key in new if wanted[key][0] in fetched]
        return self._without(gone)._with(found, wanted, fetched)._compacted()

    def _is_as(self, key: str, form: tuple[str, int] | None) -> bool:
        row = self.row_of.get(key)
        return row is not None and form == (self.hashes[row], int(self.order[row]))

    def _without(self, rows: Sequence[int]) -> Gallery:
        if not rows:
            return self
        live = self.live.copy()
        live[rows] = False
        row_of = dict(self.row_of)
        for row in rows:
            del row_of[self.keys[row]]
        return replace(self, live=live, row_of=row_of)

    def _with(
        self, keys: Sequence[str], wanted: Mapping[str, tuple[str, int]], fetched: Mapping[str, AnyArray]
    ) -> Gallery:
        if not keys:
            return self
        block = self.scoring.stored(np.stack([fetched[wanted[key][0]] for key in keys]))
        start = len(self.keys)
        return replace(
            self,
            keys=(*self.keys, *keys),
            hashes=(*self.hashes, *(wanted[key][0] for key in keys)),
            row_of={**self.row_of, **{key: start + number for number, key in enumerate(keys)}},
            points=GrowingMatrix(block) if self.points is None else self.points.appended(block),
            order=np.concatenate([self.order, np.array([wanted[key][1] for key in keys], dtype=np.int64)]),
            live=np.concatenate([self.live, np.ones(len(keys), dtype=bool)]),
        )

    def _compacted(self) -> Gallery:
        """Drop dead rows when they are most of the gallery; an index loses nothing, its positions are mapped."""
        if len(self) * 2 >= len(self.keys):
            return self
        kept = np.flatnonzero(self.live)
        place = np.full(len(self.keys) + 1, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        keys = tuple(self.keys[row] for row in kept)
        return replace(
            self,
            keys=keys,
            hashes=tuple(self.hashes[row] for row in kept),
            row_of={key: row for row, key in enumerate(keys)},
            points=GrowingMatrix(self.vectors[kept]),
            order=self.order[kept],
            live=np.ones(len(kept), dtype=bool),
            indexed_rows=place[self.indexed_rows],
        )

    def with_index(self, index: ApproximateIndex, keys: Sequence[str], hashes: Sequence[str]) -> Gallery:
        """Return the gallery with an index whose positions hold these contents; those not here are dead in it."""
        found = zip((self.row_of.get(key, -1) for key in keys), hashes, strict=True)
        rows = [row if row >= 0 and self.hashes[row] == content else -1 for row, content in found]
        return replace(self, index=index, indexed_rows=np.array(rows, dtype=np.int64))

    @cached_property
    def outdated_share(self) -> float:
        """How much of the search happens outside the index: new rows and dead positions, as a share of it."""
        if self.index is None:
            return 1.0
        dead = len(self.indexed_rows) - np.count_nonzero(self._live_positions)
        return float((len(self._live_tail) + dead) / max(1, len(self.indexed_rows)))

    @property
    def wants_index(self) -> bool:
        """Whether building an index anew would help."""
        return self.scoring.index_metric is not None and self.outdated_share > _OUTDATED_SHARE

    def search(
        self, queries: AnyArray, k: int, *, allowed: BoolArray | None = None, exact: bool = False
    ) -> tuple[IntArray, FloatArray]:
        """Return rows and scores of the ``k`` best allowed rows for each query, −1 and −∞ where there are fewer."""
        usable = self.live if allowed is None else self.live & allowed
        available = len(self) if allowed is None else int(np.count_nonzero(usable))
        if self.index is None or exact or available <= _FEW_ROWS:
            return self._exact(queries, k, np.flatnonzero(usable))
        rows, scores = self._indexed(queries, k, usable)
        if rows.min() < 0:
            short = np.flatnonzero((rows >= 0).sum(axis=1) < min(k, available))
            rows[short], scores[short] = self._exact(queries[short], k, np.flatnonzero(usable))
        return rows, scores

    def _exact(self, queries: AnyArray, k: int, candidates: IntArray) -> tuple[IntArray, FloatArray]:
        rows = np.full((len(queries), k), -1, dtype=np.int64)
        best = np.full((len(queries), k), -np.inf)
        if not len(candidates):
            return rows, best
        everything = len(candidates) == len(self.keys)
        kept = self.vectors if everything else self.vectors[candidates]
        if self.scoring.is_hash_codes and self._is_in_order and k <= _MANY_NEAREST:
            distances, places = nearest_codes(queries, kept, k)
            rows[:, : places.shape[1]], best[:, : places.shape[1]] = candidates[places], -distances
            return rows, best
        order = self.order if everything else self.order[candidates]
        for block in row_blocks(len(queries), _SCORES_AT_ONCE // len(candidates)):
            for number, scores in enumerate(self.scoring.scores(queries[block], kept), start=block.start):
                top = top_rows(scores, order, k)
                rows[number, : len(top)] = candidates[top]
                best[number, : len(top)] = scores[top]
        return rows, best

    def _indexed(self, queries: AnyArray, k: int, usable: BoolArray) -> tuple[IntArray, FloatArray]:
        if self.index is None:
            return self._exact(queries, k, np.flatnonzero(usable))
        every = usable is self.live
        alive = self._live_positions if every else self._alive_positions(usable)
        # Rounded lists are asked for more than is wanted, because the exact scores may order them otherwise.
        wanted = min(len(self.index), 2 * k if self.index.is_coarse else k)
        scores, positions = self.index.search(queries, wanted, None if alive.all() else alive)
        rows = self.indexed_rows[positions]
        missing = positions < 0
        rows[missing] = -1
        is_score = self.scoring.is_linear and self.scoring.space.name != "covariance"
        rescored = self.index.is_coarse or not is_score
        if rescored:
            scores = self.scoring.paired_scores(queries, self.vectors[np.maximum(rows, 0)])
        scores[missing] = -np.inf
        tail = self._live_tail if every else self._tail(usable)
        if not len(tail) and not rescored and rows.shape[1] == k:
            return rows, scores
        if len(tail):
            tail_rows, tail_scores = self._exact(queries, min(k, len(tail)), tail)
            rows, scores = np.hstack([rows, tail_rows]), np.hstack([scores, tail_scores])
        return self._ordered(rows, scores, k)

    def _ordered(self, rows: IntArray, scores: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        best = np.lexsort((self.order[rows], -scores), axis=1)[:, :k]
        rows, scores = np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)
        missing = ((0, 0), (0, k - rows.shape[1]))
        return np.pad(rows, missing, constant_values=-1), np.pad(scores, missing, constant_values=-np.inf)

    @cached_property
    def _is_in_order(self) -> bool:
        # They do unless an item came back.
        return bool((self.order[1:] >= self.order[:-1]).all())

    @cached_property
    def _live_positions(self) -> BoolArray:
        return self._alive_positions(self.live)

    @cached_property
    def _live_tail(self) -> IntArray:
        return self._tail(self.live)

    def _alive_positions(self, usable: BoolArray) -> BoolArray:
        # Position −1 looks up the appended False.
        return np.append(usable, False)[self.indexed_rows]

    def _tail(self, usable: BoolArray) -> IntArray:
        outside = usable.copy()
        outside[self.indexed_rows[self.indexed_rows >= 0]] = False
        return np.flatnonzero(outside)
