"""Models of a click log beside a retriever, judged on queries they were not learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.collection.collection import Collection
from diptych.collection.learning.corrected_clicks import CorrectedClicks
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.metrics import GradedRelevance, Measure
from diptych.metrics.evaluation import evaluate_scores
from diptych.models.clicks import ClickModel
from diptych.models.fusion import CoordinateAscent
from diptych.retriever import Retriever, fused_retriever


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


Compare = Callable[[Sequence[str], AnyArray], FloatArray]
_QUERIES_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """Queries with some wanted and some unwanted items, these items (rows of features), and their grades."""

    queries: tuple[str, ...]
    rows: tuple[IntArray, ...]
    grades: tuple[FloatArray, ...]

    def __len__(self) -> int:
        return len(self.queries)

    @classmethod
    def of(cls, clicks: CorrectedClicks, row_of: IntArray, *, fillers: IntArray | None = None) -> JudgedLists:
        """Return the lists of what was shown for each query; ``row_of`` is the row of features of each item, or −1.

        ``fillers`` are rows that join every list as not wanted, for clicks without a record of what else was shown.
        """
        known = clicks.select(row_of[clicks.item_ids] >= 0)
        order = np.argsort(known.query_ids, kind="stable")
        starts = np.flatnonzero(np.diff(known.query_ids[order], prepend=-1))
        queries, rows, grades = [], [], []
        for part in np.split(order, starts[1:]) if len(order) else []:
            own, own_grades = row_of[known.item_ids[part]], known.grades[part]
            if fillers is not None:
                more = np.setdiff1d(fillers, own)
                own, own_grades = np.append(own, more), np.append(own_grades, np.zeros(len(more)))
            if 0 < np.count_nonzero(own_grades) < len(own_grades):
                queries.append(known.queries[int(known.query_ids[part[0]])])
                rows.append(own)
                grades.append(own_grades)
        return cls(tuple(queries), tuple(rows), tuple(grades))

    def select(self, chosen: Sequence[int]) -> JudgedLists:
        """Return some of the lists."""
        queries, rows = tuple(self.queries[row] for row in chosen), tuple(self.rows[row] for row in chosen)
        return JudgedLists(queries, rows, tuple(self.grades[row] for row in chosen))

    def scores(self, compare: Compare, features: AnyArray) -> list[FloatArray]:
        """Return the scores of each query's items, given what compares queries with rows of features."""
        found: list[FloatArray] = []
        for block in row_blocks(len(self), _QUERIES_AT_ONCE):
            used, places = np.unique(np.concatenate(self.rows[block]), return_inverse=True)
            compared = compare(self.queries[block], features[used])
            ends = np.cumsum([len(rows) for rows in self.rows[block]])
            parts = np.split(places.reshape(-1), ends[:-1])
            found += [compared[query, part] for query, part in enumerate(parts)]
        return found

    def values(self, scores: Sequence[FloatArray], measure: Measure) -> FloatArray:
        """Return the measure of each list under some scores."""
        lengths = [len(grades) for grades in self.grades]
        padded = np.zeros((len(self), max(lengths)))
        for row, own in enumerate(scores):
            padded[row, : len(own)] = own
        columns = np.concatenate([np.arange(length) for length in lengths])
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        judged = sparse.csr_array((np.concatenate(self.grades), columns, indptr), shape=padded.shape)
        return evaluate_scores(padded, GradedRelevance(judged, judged_only=True), [measure]).values[measure]


Progress = Callable[[str, int, int], None]
Weights = dict[str, float]
PRESENT = "present"
_LEAST_PRESENT = 0.1


class FusionTrial:
    """Scores each judged query by models that were learned from the queries of other folds, and weighs the models.

    ``folds`` has the fold of each query of the log, −1 for those that are only learned from. A model that cannot be
    learned from so few clicks is left out, with its reason in ``failures``. ``answered`` is the share of judged queries
    that some model has something to say about.
    """

    def __init__(
        self,
        base: Retriever,
        parts: Sequence[ClickModel],
        clicks: CorrectedClicks,
        gallery: LogGallery,
        lists: JudgedLists,
        folds: IntArray,
        *,
        progress: Progress,
    ) -> None:
        self._base = base
        self._unfitted = {type(part).__name__: part for part in parts}
        self._clicks = clicks.select(gallery.row_of[clicks.item_ids] >= 0)
        self._gallery = gallery
        self._progress = progress
        self.lists = lists
        self.failures: dict[str, str] = {}
        row_of = {query: row for row, query in enumerate(clicks.queries)}
        self._rows = np.array([row_of[query] for query in lists.queries], dtype=np.int64)
        self._fold_of_list = folds[self._rows]
        self._scores, self.answered = self._scored(folds)
        self.scales = {name: _spread(found) for name, found in self._scores.items()}
        # A retriever that knows no word of the log scores all items alike.
        self.scales[PRESENT] = self.scales[PRESENT] or 1.0
        self._used = [name for name in self._scores if name == PRESENT or self.scales[name] > 0]

    def held_out(self, measure: Measure, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return the measure of each judged query under the retriever, and under the fusion weighed by other folds."""
        old = self.lists.values(self._scores[PRESENT], measure)
        new = np.zeros(len(self.lists))
        folds = np.unique(self._fold_of_list).tolist()
        for number, fold in enumerate(folds):
            self._progress("weighing the models", number, len(folds) + 1)
            here = np.flatnonzero(self._fold_of_list == fold).tolist()
            weights = self._weighed(np.flatnonzero(self._fold_of_list != fold), measure, seed)
            new[here] = self.lists.select(here).values([self._fused(row, weights) for row in here], measure)
        return old, new

    def weights(self, measure: Measure, seed: int) -> Weights:
        """Return what the retriever and each model weigh, by all judged queries."""
        self._progress("weighing the models", 1, 2)
        found = self._weighed(np.arange(len(self.lists)), measure, seed)
        self._progress("weighing the models", 2, 2)
        return found

    def fused(self, weights: Weights, name: str) -> Retriever:
        """Return the fusion with models learned from all queries."""
        counting = [part for part, weight in weights.items() if weight > 0 and part != PRESENT]
        parts = self._fitted(np.ones(len(self._clicks.queries), dtype=bool), counting)
        names = [PRESENT, *parts]
        return fused_retriever(
            self._base,
            list(parts.values()),
            weights=[weights[part] for part in names],
            scales=[self.scales[part] for part in names],
            pictures=self._gallery.features,
            name=name,
        )

    def _scored(self, folds: IntArray) -> tuple[dict[str, list[FloatArray]], float]:
        """Return the scores of all lists by part, each from models that never saw the list's query."""
        scores: dict[str, list[FloatArray]] = {PRESENT: self._by_retriever()}
        by_part: dict[str, dict[int, FloatArray]] = {name: {} for name in self._unfitted}
        answered = np.zeros(len(self.lists), dtype=bool)
        n_folds = int(folds.max()) + 1
        for fold in range(n_folds):
            self._progress("learning models of the log", fold, n_folds)
            here = np.flatnonzero(self._fold_of_list == fold).tolist()
            parts = self._fitted(folds != fold, list(self._unfitted))
            lists = self.lists.select(here)
            for name, part in parts.items():
                by_part[name].update(zip(here, lists.scores(part.scores, self._gallery.features), strict=True))
                answered[here] |= [part.answers(query) for query in lists.queries]
        self._progress("learning models of the log", n_folds, n_folds)
        for name, found in by_part.items():
            if len(found) == len(self.lists):
                scores[name] = [found[row] for row in range(len(self.lists))]
        return scores, float(answered.mean())

    def _by_retriever(self) -> list[FloatArray]:
        def compare(queries: Sequence[str], features: AnyArray) -> FloatArray:
            points = self._base.encode_texts(list(queries)), self._base.images_to_points(features)
            return self._base.space.compare(*points, "text_query")

        return self.lists.scores(compare, self._gallery.features)

    def _weighed(self, rows: IntArray, measure: Measure, seed: int) -> Weights:
        if self._used == [PRESENT]:
            return {PRESENT: 1.0}
        scores = [np.stack([self._scores[name][row] / self.scales[name] for name in self._used]) for row in rows]
        ascent = CoordinateAscent(measure=measure, random_state=seed)
        ascent.fit(scores, [self.lists.grades[row] for row in rows])
        found = np.maximum(np.asarray(ascent.weights_, dtype=np.float64), 0.0)
        # Queries that the log says nothing about are answered by the retriever alone: it never loses its say.
        found[0] = max(found[0], _LEAST_PRESENT * found.sum())
        return dict(zip(self._used, (found / found.sum()).tolist(), strict=True))

    def _fused(self, row: int, weights: Weights) -> FloatArray:
        parts = [weight / self.scales[name] * self._scores[name][row] for name, weight in weights.items() if weight]
        return np.asarray(np.sum(parts, axis=0))

    def _fitted(self, learned_from: BoolArray, names: Sequence[str]) -> dict[str, ClickModel]:
        log = self._clicks.of_queries(learned_from).log()
        rows = log.image_rows(dict(zip(self._clicks.items, self._gallery.row_of.tolist(), strict=True)))
        features = self._gallery.features[rows]
        fitted: dict[str, ClickModel] = {}
        for name in names:
            try:
                fitted[name] = clone(self._unfitted[name]).fit_clicks(log, features)
            except InvalidInputError as problem:
                self.failures[name] = str(problem)
        return fitted


def _spread(scores: Sequence[FloatArray]) -> float:
    """Return the standard deviation of scores within a query, over all queries."""
    return float(np.sqrt(np.mean([float(np.var(own.astype(np.float64))) for own in scores])))
