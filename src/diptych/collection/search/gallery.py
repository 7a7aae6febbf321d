"""The points that are searched, and whatever index they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.codes import nearest_codes
from diptych.collection.browse.live_items import Part, text_hash
from diptych.collection.browse.segment import FileSegment, Segment
from diptych.collection.search.approximate_index import ApproximateIndex, Scoring
from diptych.collection.storage.item import Item
from diptych.collection.storage.word_index import WordHits


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


def _best(rows: IntArray, scores: FloatArray, orders: IntArray, k: int) -> tuple[IntArray, FloatArray]:
    """Return the ``k`` best of each line of rows and scores, best first; equal scores by ``orders``."""
    best = np.lexsort((orders, -scores), axis=1)[:, :k]
    return np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)


_SCORES_AT_ONCE = 1 << 24
_FEW_ROWS = 20_000
# Beyond this, sorting all scores is faster than keeping the best.
_MANY_NEAREST = 2000


@dataclass(frozen=True)
class PointBlock:
    """The points of a segment's pictures, captions or regions of pictures, in the order of addition.

    ``owners`` are the places of their items in the segment, ``captions`` the places of captions, or of regions, among
    those of their item. An index covers all rows of the block. ``outputs`` gives what the bits of some codes are the
    signs of, of unit length, NaN where nobody knows.
    """

    owners: IntArray
    captions: IntArray | None
    vectors: AnyArray
    index: ApproximateIndex | None = None
    outputs: Callable[[IntArray], AnyArray] | None = None

    def __len__(self) -> int:
        return len(self.owners)

    def usable(self, items: BoolArray | None) -> BoolArray | None:
        """Return which rows are those of some items of the segment; None stands for all."""
        return None if items is None else items.take(self.owners)

    def contents(self, segment: Segment, rows: IntArray) -> list[str]:
        """Return what the points of some rows of the segment are stored under."""
        captions = None if self.captions is None else self.captions[rows]
        found = segment.contents(self.owners[rows], captions).tolist()
        return found if captions is None else list(map(text_hash, found))

    def rows_at(self, owners: IntArray, captions: IntArray) -> IntArray:
        """Return the rows of some items' pictures, or of single captions of theirs; −1 where there is none."""
        if not len(self):
            return np.full(len(owners), -1, dtype=np.int64)
        # Of another type, they would be looked for in a copy of all.
        owners = owners.astype(self.owners.dtype, copy=False)
        rows = np.searchsorted(self.owners, owners)
        if self.captions is not None:
            # Captions without a point leave gaps, so the place is looked for within the rows of the item.
            ends = np.searchsorted(self.owners, owners, side="right")
            rows = np.minimum(rows + captions, ends - 1)
            while (late := (rows >= 0) & (self.owners[rows] == owners) & (self.captions[rows] > captions)).any():
                rows = np.where(late, rows - 1, rows)
        rows = np.minimum(rows, len(self) - 1)
        same = self.owners[rows] == owners
        if self.captions is not None:
            same &= self.captions[rows] == captions
        return np.where(same & (owners >= 0), rows, -1)

    def search(
        self, scoring: Scoring, queries: AnyArray, k: int, usable: BoolArray | None, *, exact: bool
    ) -> tuple[IntArray, FloatArray]:
        """Return rows and scores of the ``k`` best usable rows for each query, −1 and −∞ where there are fewer."""
        available = len(self) if usable is None else int(np.count_nonzero(usable))
        k = min(k, available)
        is_little = not k or available <= min(_FEW_ROWS, len(self) // 2)
        # Whoever wants very many waits no longer for all to be compared.
        if self.index is None or exact or is_little or self.index.wanted(k) > max(_MANY_NEAREST, len(self) // 100):
            return self._exact(scoring, queries, k, usable)
        rows, scores = self._indexed(self.index, scoring, queries, k, usable)
        short = np.flatnonzero(rows[:, k - 1] < 0)
        if len(short):
            rows[short], scores[short] = self._exact(scoring, queries[short], k, usable)
        return rows, scores

    def _exact(
        self, scoring: Scoring, queries: AnyArray, k: int, usable: BoolArray | None
    ) -> tuple[IntArray, FloatArray]:
        rows = np.full((len(queries), k), -1, dtype=np.int64)
        best = np.full((len(queries), k), -np.inf)
        if not k:
            return rows, best
        among = None if usable is None else np.flatnonzero(usable)
        kept = self.vectors if among is None else self.vectors[among]
        if scoring.is_hash_codes and k <= _MANY_NEAREST:
            distances, places = nearest_codes(queries, kept, k)
            return (places if among is None else among[places]), -distances.astype(np.float64)
        order = np.arange(len(kept))
        for block in row_blocks(len(queries), max(1, _SCORES_AT_ONCE // len(kept))):
            block_scores = scoring.scores(queries[block], kept)
            for number, scores in enumerate(block_scores, start=block.start):
                top = top_rows(scores, order, k)
                rows[number, : len(top)] = top if among is None else among[top]
                best[number, : len(top)] = scores[top]
        return rows, best

    def _indexed(
        self, index: ApproximateIndex, scoring: Scoring, queries: AnyArray, k: int, usable: BoolArray | None
    ) -> tuple[IntArray, FloatArray]:
        found, rows = index.search(queries, min(len(self), index.wanted(k)), usable)
        is_missing, is_score = rows < 0, scoring.is_linear and scoring.space.name != "covariance"
        if is_score and not index.is_coarse:
            scores = found.astype(np.float64)
        else:
            scores = np.empty(rows.shape)
            for some in row_blocks(len(queries), max(1, _SCORES_AT_ONCE // rows.shape[1] // self.vectors.shape[1])):
                # The last row stands where there is none.
                scores[some] = scoring.paired_scores(queries[some], self.vectors[rows[some]])
        if is_missing.any():
            scores[is_missing] = -np.inf
        return _best(rows, scores, rows, k)


def content_of(item: Item, caption: int | None) -> str:
    """Return what the point of an item or of its caption is stored under."""
    return str(item.content_hash) if caption is None else text_hash(item.captions[caption])


@dataclass(frozen=True)
class Gallery:
    """The searched points of one side: those of the live items of some segments, one block for each.

    Rows are numbered through all blocks; a row whose item is no longer live is never found.
    """

    scoring: Scoring
    parts: tuple[Part, ...] = ()
    blocks: tuple[PointBlock, ...] = ()

    def __len__(self) -> int:
        return self._n_live

    @cached_property
    def _n_live(self) -> int:
        return self.n_among([part.live for part in self.parts])

    def n_among(self, items: Sequence[BoolArray | None] | None) -> int:
        """Return how many rows belong to some items of each part; None stands for all live ones."""
        if items is None:
            return len(self)
        usable = ((block, block.usable(mask)) for block, mask in zip(self.blocks, items, strict=True))
        return sum(len(block) if rows is None else int(np.count_nonzero(rows)) for block, rows in usable)

    @cached_property
    def _starts(self) -> IntArray:
        return np.cumsum([0, *map(len, self.blocks)])

    def start_of(self, number: int) -> int:
        """Return the row at which a block begins."""
        return int(self._starts[number])

    @property
    def is_indexed(self) -> bool:
        """Whether a search that is not exact uses an index."""
        return any(block.index is not None for block in self.blocks)

    @property
    def wants_index(self) -> bool:
        """Whether building an index would help: most rows are compared one by one."""
        covered = sum(len(block) for block in self.blocks if block.index is not None)
        return self.scoring.index_metric is not None and covered < 0.8 * int(self._starts[-1])

    @property
    def wants_outputs(self) -> bool:
        """Whether keeping the outputs behind codes would help: there are files that have none beside them."""
        pairs = zip(self.parts, self.blocks, strict=True)
        return any(isinstance(part.segment, FileSegment) and block.outputs is None for part, block in pairs)

    def search(
        self, queries: AnyArray, k: int, *, allowed: Sequence[BoolArray] | None = None, exact: bool = False
    ) -> tuple[IntArray, FloatArray]:
        """Return rows and scores of the ``k`` best rows for each query, −1 and −∞ where there are fewer.

        ``allowed`` marks the items of each part that may be found.
        """
        found = []
        for number, (part, block) in enumerate(zip(self.parts, self.blocks, strict=True)):
            usable = block.usable(part.chosen(None if allowed is None else allowed[number]))
            if len(block) and (usable is None or usable.any()):
                rows, scores = block.search(self.scoring, queries, k, usable, exact=exact)
                start = int(self._starts[number])
                found.append((np.where(rows < 0, -1, rows + start) if start else rows, scores))
        if len(found) == 1 and found[0][0].shape[1] == k:
            return found[0]
        shape = len(queries), k
        rows, scores = map(np.hstack, zip(*found, (np.full(shape, -1), np.full(shape, -np.inf)), strict=True))
        return _best(rows, scores, self.orders(rows), k)

    def rows_among(self, allowed: Sequence[BoolArray] | None) -> IntArray:
        """Return all rows of live items, or of the allowed ones among them."""
        rows = []
        for number, (part, block) in enumerate(zip(self.parts, self.blocks, strict=True)):
            usable = block.usable(part.chosen(None if allowed is None else allowed[number]))
            rows.append((np.arange(len(block)) if usable is None else np.flatnonzero(usable)) + self._starts[number])
        return np.concatenate([np.zeros(0, dtype=np.int64), *rows])

    def rows_in_order(self) -> IntArray:
        """Return all rows of live items in the order of addition."""
        rows = self.rows_among(None)
        return np.asarray(rows[np.argsort(self.orders(rows), kind="stable")])

    def vectors(self, rows: IntArray) -> AnyArray:
        """Return the kept points of some rows."""
        filled = next((block.vectors for block in self.blocks if len(block)), np.zeros((0, 0), dtype=np.float32))
        found = np.empty((len(rows), filled.shape[1]), dtype=filled.dtype)
        for number, places, inner in self.located(rows):
            found[places] = self.blocks[number].vectors[inner]
        return found

    def outputs(self, rows: IntArray, width: int) -> FloatArray:
        """Return the outputs of some rows of codes, NaN where none are kept."""
        found = np.full((len(rows), width), np.nan, dtype=np.float32)
        for number, places, inner in self.located(rows):
            outputs = self.blocks[number].outputs
            if outputs is not None:
                found[places] = outputs(inner)
        return found

    def orders(self, rows: IntArray) -> IntArray:
        """Return what decides between equal scores: when the items were added, and the places of captions."""
        flat = np.asarray(rows).ravel()
        orders = np.zeros(len(flat), dtype=np.int64)
        for number, places, inner in self.located(flat):
            block = self.blocks[number]
            orders[places] = self.parts[number].segment.orders[block.owners[inner]]
            if block.captions is not None:
                orders[places] += block.captions[inner]
        return orders.reshape(np.shape(rows))

    def found(self, rows: Sequence[int]) -> list[tuple[Item, int | None]]:
        """Return the item of each row, and the place of its caption where captions are searched."""
        located: dict[int, tuple[Item, int | None]] = {}
        flat = np.asarray(rows, dtype=np.int64)
        for number, places, inner in self.located(flat):
            block, segment = self.blocks[number], self.parts[number].segment
            captions = [None] * len(inner) if block.captions is None else block.captions[inner].tolist()
            items = segment.items_at(block.owners[inner].tolist())
            located.update(zip(places.tolist(), zip(items, captions, strict=True), strict=True))
        return [located[place] for place in range(len(flat))]

    def keys(self, rows: IntArray) -> AnyArray:
        """Return the ids of the items of some rows, or of the captions; an empty one for −1."""
        keys = np.full(rows.size, "", dtype=object)
        for number, places, inner in self.located(rows.ravel()):
            block = self.blocks[number]
            captions = None if block.captions is None else block.captions[inner]
            keys[places] = self.parts[number].segment.names(block.owners[inner], captions)
        return keys.reshape(rows.shape)

    def contents(self, rows: IntArray) -> AnyArray:
        """Return what the points of some rows are stored under, as :func:`content_of` of what :meth:`found` gives."""
        contents = np.full(len(rows), "", dtype=object)
        for number, places, inner in self.located(rows):
            contents[places] = self.blocks[number].contents(self.parts[number].segment, inner)
        return contents

    def rows_of(self, item_id: str) -> list[int]:
        """Return the rows of an item: that of its picture, or those of its captions."""
        rows: list[int] = []
        for number, (part, block) in enumerate(zip(self.parts, self.blocks, strict=True)):
            for owner in part.segment.find("id", item_id):
                if part.is_live(owner):
                    wanted = np.array([owner, owner + 1], dtype=block.owners.dtype)
                    first, end = np.searchsorted(block.owners, wanted).tolist()
                    rows += range(first + int(self._starts[number]), end + int(self._starts[number]))
        return rows

    @property
    def is_of_captions(self) -> bool:
        """Whether captions are searched, not pictures."""
        return any(block.captions is not None for block in self.blocks)

    def rows_of_hits(self, hits: WordHits, allowed: Sequence[BoolArray] | None) -> tuple[IntArray, FloatArray]:
        """Return the rows that words lead to, with their scores; captions lead to their own or to their picture's."""
        rows, scores = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        gains = np.array(hits.scores, dtype=np.float64)
        for number, (part, block) in enumerate(zip(self.parts, self.blocks, strict=True)):
            if hits.holder == "caption":
                owners, captions = part.segment.captions(hits.keys)
                which: IntArray = np.arange(len(hits.keys))
            elif block.captions is not None:
                # The name of a file says nothing of one caption or another.
                continue
            else:
                owners, which = part.segment.holders(hits)
                captions = np.zeros_like(owners)
            live = part.chosen(None if allowed is None else allowed[number])
            usable = (owners >= 0) if live is None else (owners >= 0) & live[owners]
            found = block.rows_at(owners, captions)
            kept = usable & (found >= 0)
            rows.append(found[kept] + self._starts[number])
            scores.append(gains[which[kept]])
        return np.concatenate(rows), np.concatenate(scores)

    def located(self, rows: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Yield for each block the places of its rows in ``rows``, and their numbers within the block."""
        for number, (start, end) in enumerate(pairwise(self._starts.tolist())):
            places = np.flatnonzero((rows >= start) & (rows < end))
            if len(places):
                yield number, places, rows[places] - start
