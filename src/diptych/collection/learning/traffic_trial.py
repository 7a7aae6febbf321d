"""A memory of a click log beside a retriever, judged by later searches of other people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import norm

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.collection.collection import Collection
from diptych.collection.learning.position_model import PositionModel
from diptych.collection.learning.search_log import Evidence, SearchLog
from diptych.collection.learning.visual_consistency import VisualConsistencyTest
from diptych.encoders.text.word_pipeline import clean_query
from diptych.errors import InvalidInputError
from diptych.metrics import randomisation_test
from diptych.models.clicks import QueryMemory
from diptych.retriever import Retriever, fused_retriever

# What the log says weighs a quarter of what the retriever says, each in its own standard deviation.
SHARE = 0.25
# An item is judged by so many expected looks; fewer do not tell unwanted from unseen.
FEWEST_LOOKS = 2.0
MARGIN = 0.01
_QUERIES_AT_ONCE = 256
_FOLDS = 5
# Queries with fewer words in common than this, as a share of all their words, do not answer for one another.
_SIMILAR = 0.5
_PICTURES_OF_SPREAD = 2_000
# Sums of so many random signs are normal.
_MOST_SWAPPED = 500
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class LogGallery:
    """Features of the items ``ids``, and for each name in the log its row, −1 where there is no such picture."""

    ids: tuple[str, ...]
    features: AnyArray
    row_of: IntArray

    @classmethod
    def of(cls, collection: Collection, names: Sequence[str], *, retriever: str | None = None) -> LogGallery:
        """Return the features of items that are named by id or path; what the collection no longer has is left out."""
        ids = {name: collection[name].id for name in names if name in collection}
        found, features = collection.features("image", list(dict.fromkeys(ids.values())), retriever)
        if not found:
            raise InvalidInputError(
                "no item of the log is a picture of this collection; pass a log with ids or paths of its items"
            )
        row_of_id = {item_id: row for row, item_id in enumerate(found)}
        rows = [row_of_id.get(ids.get(name, ""), -1) for name in names]
        return cls(tuple(found), features, np.array(rows, dtype=np.int64))


@dataclass(frozen=True)
class Gain:
    """How far up wanted items come before and after, in a part of the traffic, and how sure that is.

    ``old`` and ``new`` are the mean discounted gains of a search; ``p_value`` is the larger one of two randomisation
    tests of a difference, over people and over queries; ``low`` is the lower end of the 95 % interval of the relative
    gain. ``share`` is the part's share of the judged searches. ``n_people`` is None where visitors are not told apart.
    """

    old: float
    new: float
    p_value: float
    low: float
    share: float
    n_searches: int
    n_queries: int
    n_people: int | None

    @property
    def relative(self) -> float:
        """The relative gain."""
        return self.new / self.old - 1 if self.old > 0 else 0.0

    @property
    def is_no_worse(self) -> bool:
        """Whether it is not worse by more than the margin: 95 % sure, or not changed at all."""
        return self.n_searches == 0 or self.low >= -MARGIN


class TrafficTrial:
    """Learns from earlier searches, and judges by later ones of people who had not asked the same before.

    ``base`` is the retriever that the memory joins, ``present`` the one in force, which may have learned from clicks
    itself, until the time ``seen_until``: both are compared on what neither has seen.
    """

    def __init__(
        self,
        base: Retriever,
        present: Retriever,
        log: SearchLog,
        gallery: LogGallery,
        *,
        later: float = 0.3,
        seen_until: float = -np.inf,
        progress: Progress,
    ) -> None:
        self._base, self._present, self._gallery = base, present, gallery
        self._log = log.on_items(gallery.row_of >= 0)
        self._progress = progress
        self._points: dict[int, tuple[AnyArray, AnyArray]] = {}
        self._axes: QueryMemory | None = None
        cut = np.arange(len(log)) >= round((1 - later) * len(log))
        is_later = (log.times > seen_until) & cut if np.isfinite(seen_until) else cut
        self._learned = self._log.select(~cut)
        self._later = self._log.select(is_later & ~_asked_before(log, ~cut))
        progress("learning positions", 0, 3)
        self.positions = self._fitted_positions(self._log)
        progress("learning what is wanted", 1, 3)
        evidence = Evidence.of(self._learned, self._fitted_positions(self._learned))
        self._memory = self._fitted(evidence)
        self._scales = self._scales_of(self._memory, evidence)
        self._known = np.zeros(len(log.queries), dtype=bool)
        self._known[evidence.query_ids] = True
        progress("judging by later searches", 2, 3)
        self._judged = Evidence.of(self._later, self.positions)
        self._pictures = Evidence.of(self._log, self.positions)

    @property
    def n_repeated(self) -> int:
        """How many queries that were learned from were asked again by others."""
        return int(np.count_nonzero(self._known[np.unique(self._later.query_ids)]))

    def gains(self, *, reach: bool) -> tuple[Gain, Gain, list[tuple[str, float, float]]]:
        """Return the gain on queries that were learned from, and on others; and each of the first, before and after."""
        self._memory.reach = reach
        old, new = self._scored(self._present), self._scored(self._base, self._memory)
        repeated, examples = self._gain(old, new, self._known)
        return repeated, self._gain(old, new, ~self._known)[0], examples

    def held_out(self) -> Gain:
        """Return the gain on whole queries that were kept back, answered by the directions of similar ones."""
        fold_of = np.random.default_rng(0).permutation(len(self._known)) % _FOLDS
        old, new = self._scored(self._base), np.zeros(len(self._judged.query_ids))
        for fold in range(_FOLDS):
            self._progress("keeping queries back", fold, _FOLDS)
            memory = self._memory.without([self._log.queries[row] for row in np.flatnonzero(fold_of == fold)])
            memory.reach = True
            here = fold_of[self._judged.query_ids] == fold
            new[here] = self._scored(self._base, memory)[here]
        return self._gain(old, new, self._known)[0]

    def visual_consistency(self) -> VisualConsistencyTest:
        """Test whether clicks depend on what the pictures show."""
        seen = self._pictures
        points = self._memory.encode_images(self._gallery.features).astype(np.float64)
        return VisualConsistencyTest.run(
            seen,
            points[self._gallery.row_of[seen.item_ids]],
            self._pair_scores(self._base, seen.query_ids, seen.item_ids),
            [clean_query(query) for query in self._log.queries],
            within_queries=self._log.is_examined,
        )

    def learned(self) -> QueryMemory:
        """Return a memory of all searches."""
        return self._fitted(self._pictures)

    def fused(self, name: str, *, reach: bool) -> Retriever:
        """Return the retriever with a memory of all searches."""
        memory = self.learned()
        memory.reach = reach
        old, own = self._scales_of(memory, self._pictures)
        return fused_retriever(
            self._base,
            [memory],
            weights=[1.0, SHARE * old],
            scales=[1.0, own],
            pictures=self._gallery.features,
            name=name,
        )

    def _fitted_positions(self, log: SearchLog) -> PositionModel:
        seen = log.impressions()
        pairs = np.divmod(seen.pairs, max(1, len(log.items)))
        return PositionModel().fit(seen, self._pair_scores(self._base, *pairs))

    def _fitted(self, evidence: Evidence) -> QueryMemory:
        rows = self._gallery.row_of[evidence.item_ids]
        columns = (evidence.query_ids, rows, evidence.looks, evidence.clicks)
        memory = QueryMemory(reach=False, min_similarity=_SIMILAR).fit_looks(
            self._log.queries, *columns, self._gallery.features, axes_of=self._axes
        )
        self._axes = self._axes or memory
        return memory

    def _scales_of(self, memory: QueryMemory, evidence: Evidence) -> tuple[float, float]:
        """Return the standard deviation, over pictures, of the retriever's scores and of the memory's, for a query."""
        asked = np.unique(evidence.query_ids)
        drawn = asked[:: -(-len(asked) // _QUERIES_AT_ONCE)]
        rows = np.arange(0, len(self._gallery.ids), -(-len(self._gallery.ids) // _PICTURES_OF_SPREAD))
        old = self._compared(self._base, drawn, rows)
        own = memory.scores([self._log.queries[row] for row in drawn], self._gallery.features[rows])
        return _spread(old) or 1.0, _spread(own) or 1.0

    def _scored(self, retriever: Retriever, memory: QueryMemory | None = None) -> FloatArray:
        """Return the scores of the judged pairs."""
        judged = self._judged.query_ids, self._judged.item_ids
        scores = self._pair_scores(retriever, *judged)
        if memory is None:
            return scores
        directions = memory.encode_texts(list(self._log.queries))
        pictures = self._memory.encode_images(self._gallery.features)
        part = self._pairwise(*judged, lambda asked, rows: directions[asked] @ pictures[rows].T)
        return scores + SHARE * self._scales[0] / self._scales[1] * part

    def _pair_scores(self, retriever: Retriever, query_ids: IntArray, item_ids: IntArray) -> FloatArray:
        return self._pairwise(query_ids, item_ids, partial(self._compared, retriever))

    def _pairwise(
        self, query_ids: IntArray, item_ids: IntArray, compare: Callable[[IntArray, IntArray], FloatArray]
    ) -> FloatArray:
        """Return the score of each pair, of which those of some queries are compared at a time."""
        found = np.zeros(len(query_ids))
        asked, which = np.unique(query_ids, return_inverse=True)
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(len(asked) + 1))
        rows = self._gallery.row_of[item_ids]
        for block in row_blocks(len(asked), _QUERIES_AT_ONCE):
            own = order[ends[block.start] : ends[block.stop]]
            used, places = np.unique(rows[own], return_inverse=True)
            found[own] = compare(asked[block], used)[which[own] - block.start, places.reshape(-1)]
        return found

    def _compared(self, retriever: Retriever, asked: IntArray, rows: IntArray) -> FloatArray:
        """Return the scores of pictures for queries; every text is encoded once."""
        if id(retriever) not in self._points:
            texts = retriever.texts_to_points(retriever.query_features(list(self._log.queries)))
            self._points[id(retriever)] = texts, retriever.images_to_points(self._gallery.features)
        texts, images = self._points[id(retriever)]
        return retriever.space.compare(texts[asked], images[rows], "text_query")

    def _gain(
        self, old: FloatArray, new: FloatArray, queries: BoolArray
    ) -> tuple[Gain, list[tuple[str, float, float]]]:
        """Compare two orders of the judged items of some queries, each search weighing alike."""
        later, judged = self._later, self._judged
        counted = (judged.looks >= FEWEST_LOOKS) & queries[judged.query_ids]
        weights = later.voices
        traffic = np.bincount(later.query_ids, weights, len(later.queries))
        per_look = np.where(counted, traffic[judged.query_ids] / np.maximum(judged.looks, FEWEST_LOOKS), 0.0)
        pair_of = np.searchsorted(judged.query_ids * len(later.items) + judged.item_ids, later.pairs)
        wanted = weights[later.searches] * later.clicked * per_look[pair_of]
        searches = np.flatnonzero(queries[later.query_ids])
        values = [
            np.bincount(later.searches, wanted * _discounts(scores, judged.query_ids, counted)[pair_of], len(later))
            for scores in (old, new)
        ]
        total = float(traffic[queries].sum()) or 1.0
        units = later.people[searches], later.query_ids[searches]
        sums = [[np.bincount(unit, each[searches]).astype(np.float64) for each in values] for unit in units]
        p_value = max(_p_value(after, before) for before, after in sums)
        means = [float(each.sum()) / total for each in values]
        by_query = [
            np.bincount(later.query_ids, each, len(later.queries)) / np.maximum(traffic, 1e-9) for each in values
        ]
        asked = np.unique(units[1]).tolist()
        gain = Gain(
            old=means[0],
            new=means[1],
            p_value=p_value,
            low=_low(sums[1][1] - sums[1][0], float(values[0].sum())),
            share=len(searches) / max(1, len(later)),
            n_searches=len(searches),
            n_queries=len(asked),
            n_people=len(np.unique(units[0])) if self._log.has_visitors else None,
        )
        return gain, [(later.queries[row], float(by_query[0][row]), float(by_query[1][row])) for row in asked]


def _asked_before(log: SearchLog, earlier: BoolArray) -> BoolArray:
    """Mark the searches of known visitors who asked the same earlier: they would confirm themselves."""
    key = log.query_ids * (int(log.visitors.max(initial=0)) + 1) + log.visitors
    return np.asarray(np.isin(key, key[earlier & (log.visitors >= 0)]) & (log.visitors >= 0))


def _discounts(scores: FloatArray, query_ids: IntArray, counted: BoolArray) -> FloatArray:
    """Return 1/log₂(1 + rank) of each counted item among those of its query."""
    found = np.zeros(len(scores))
    rows = np.flatnonzero(counted)
    order = rows[np.lexsort((-scores[rows], query_ids[rows]))]
    is_first = np.diff(query_ids[order], prepend=-1) != 0
    ranks = np.arange(len(order)) - np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    found[order] = 1 / np.log2(2 + ranks)
    return found


def _p_value(after: FloatArray, before: FloatArray) -> float:
    changed = after != before
    count = int(np.count_nonzero(changed))
    if count < 2:
        return 1.0
    if count > _MOST_SWAPPED:
        differences = (after - before)[changed]
        return float(2 * norm.sf(abs(differences.sum()) / np.linalg.norm(differences)))
    return float(randomisation_test(after[changed], before[changed], seed=0).p_value)


def _low(differences: FloatArray, whole: float) -> float:
    """Return the lower end of the 95 % interval of the relative gain, from the differences of queries."""
    if not differences.any() or whole <= 0:
        return 0.0
    return float((differences.sum() - 1.645 * np.sqrt((differences**2).sum())) / whole)


def _spread(scores: FloatArray) -> float:
    """Return the standard deviation of scores within a query, over all queries."""
    return float(np.sqrt(np.mean(np.var(scores.astype(np.float64), axis=1))))
