"""The points that are searched, in memory, with whatever index they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.codes import nearest_codes
from diptych.collection.approximate_index import ApproximateIndex
from diptych.collection.growing_matrix import GrowingMatrix
from diptych.collection.scoring import Scoring
from diptych.collection.top_rows import top_rows

Fetch = Callable[[Sequence[str]], Mapping[str, AnyArray]]

_SCORES_AT_ONCE = 1 << 24
_FEW_ROWS = 20_000
_WORN_SHARE = 0.2
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
        """Return a gallery of exactly the wanted keys, each with (content hash, order), as far as they have points.

        ``fetch`` gets the hashes whose points are not here yet and returns those it has.
        """
        return self.changed(self.row_of, wanted, fetch)

    def changed(self, keys: Iterable[str], wanted: Mapping[str, tuple[str, int]], fetch: Fetch) -> Gallery:
        """Return the gallery with these keys gone or changed, and the wanted ones as they should be."""
        gone = [self.row_of[key] for key in keys if key in self.row_of and not self._is_as(key, wanted.get(key))]
        new = [key for key, form in wanted.items() if not self._is_as(key, form)]
        if not gone and not new:
            return self
        fetched = fetch(list(dict.fromkeys(wanted[key][0] for key in new)))
        return self._without(gone)._with([key for key in new if wanted[key][0] in fetched], wanted, fetched)._tidy()

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

    def _tidy(self) -> Gallery:
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
        rows = [self.row_of.get(key, -1) for key in keys]
        rows = [
            row if row >= 0 and self.hashes[row] == content else -1 for row, content in zip(rows, hashes, strict=True)
        ]
        return replace(self, index=index, indexed_rows=np.array(rows, dtype=np.int64))

    @cached_property
    def worn_share(self) -> float:
        """How much of the search happens outside the index: new rows and dead positions, as a share of it."""
        if self.index is None:
            return 1.0
        dead = len(self.indexed_rows) - np.count_nonzero(self._live_positions)
        return float((len(self._live_tail) + dead) / max(1, len(self.indexed_rows)))

    @property
    def wants_index(self) -> bool:
        """Whether building an index anew would help."""
        return self.scoring.index_metric is not None and self.worn_share > _WORN_SHARE

    def search(
        self, asked: AnyArray, k: int, *, allowed: BoolArray | None = None, exact: bool = False
    ) -> tuple[IntArray, FloatArray]:
        """Return rows and scores of the ``k`` best for each query, best first, −1 and −∞ where there are fewer.

        ``allowed`` marks the rows that may be returned. Without an index, and where few rows are allowed, every allowed
        row is compared.
        """
        usable = self.live if allowed is None else self.live & allowed
        available = len(self) if allowed is None else int(np.count_nonzero(usable))
        if self.index is None or exact or available <= _FEW_ROWS:
            return self._exact(asked, k, np.flatnonzero(usable))
        rows, scores = self._indexed(asked, k, usable)
        if rows.min() < 0:
            short = np.flatnonzero((rows >= 0).sum(axis=1) < min(k, available))
            rows[short], scores[short] = self._exact(asked[short], k, np.flatnonzero(usable))
        return rows, scores

    def _exact(self, asked: AnyArray, k: int, candidates: IntArray) -> tuple[IntArray, FloatArray]:
        rows = np.full((len(asked), k), -1, dtype=np.int64)
        best = np.full((len(asked), k), -np.inf)
        if not len(candidates):
            return rows, best
        everything = len(candidates) == len(self.keys)
        kept = self.vectors if everything else self.vectors[candidates]
        if self.scoring.is_codes and self._is_in_order and k <= _MANY_NEAREST:
            distances, places = nearest_codes(asked, kept, k)
            rows[:, : places.shape[1]], best[:, : places.shape[1]] = candidates[places], -distances
            return rows, best
        order = self.order if everything else self.order[candidates]
        for block in row_blocks(len(asked), _SCORES_AT_ONCE // len(candidates)):
            for number, scores in enumerate(self.scoring.scores(asked[block], kept), start=block.start):
                top = top_rows(scores, order, k)
                rows[number, : len(top)] = candidates[top]
                best[number, : len(top)] = scores[top]
        return rows, best

    def _indexed(self, asked: AnyArray, k: int, usable: BoolArray) -> tuple[IntArray, FloatArray]:
        if self.index is None:
            return self._exact(asked, k, np.flatnonzero(usable))
        every = usable is self.live
        alive = self._live_positions if every else self._alive_positions(usable)
        # Rounded lists are asked for more than is wanted, because the exact scores may order them otherwise.
        wanted = min(len(self.index), 2 * k if self.index.is_coarse else k)
        masked = not self._all_positions_live if every else not alive.all()
        scores, positions = self.index.search(asked, wanted, alive if masked else None)
        rows = self.indexed_rows[positions]
        missing = positions < 0
        rows[missing] = -1
        rescored = self.index.is_coarse or not self.scoring.is_engine_score
        if rescored:
            scores = self.scoring.paired_scores(asked, self.vectors[np.maximum(rows, 0)])
        scores[missing] = -np.inf
        tail = self._live_tail if every else self._tail(usable)
        if not len(tail) and not rescored and rows.shape[1] == k:
            return rows, scores
        if len(tail):
            tail_rows, tail_scores = self._exact(asked, min(k, len(tail)), tail)
            rows, scores = np.hstack([rows, tail_rows]), np.hstack([scores, tail_scores])
        return self._ordered(rows, scores, k)

    def _ordered(self, rows: IntArray, scores: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        best = np.lexsort((self.order[rows], -scores), axis=1)[:, :k]
        rows, scores = np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)
        missing = ((0, 0), (0, k - rows.shape[1]))
        return np.pad(rows, missing, constant_values=-1), np.pad(scores, missing, constant_values=-np.inf)

    @cached_property
    def _is_in_order(self) -> bool:
        """Whether rows come in the order that decides about equal scores, as they do unless an item came back."""
        return bool((self.order[1:] >= self.order[:-1]).all())

    @cached_property
    def _live_positions(self) -> BoolArray:
        return self._alive_positions(self.live)

    @cached_property
    def _all_positions_live(self) -> bool:
        return bool(self._live_positions.all())

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
