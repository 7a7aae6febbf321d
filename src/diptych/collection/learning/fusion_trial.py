"""Models of a log beside a retriever, learned from any part of the queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import clone

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.learning.corrected_clicks import CorrectedClicks
from diptych.collection.learning.judged_lists import JudgedLists
from diptych.collection.learning.log_gallery import LogGallery
from diptych.errors import InvalidInputError
from diptych.metrics import Measure
from diptych.models.clicks import ClickModel
from diptych.models.fusion import CoordinateAscent
from diptych.retriever import Retriever, fused_retriever

Progress = Callable[[str, int, int], None]

PRESENT = "present"
_LEAST_PRESENT = 0.1


class FusionTrial:
    """Learns models from the corrected clicks of some queries, weighs them on others, and fuses them with a retriever.

    Queries are given as masks over all queries of the log. A model that cannot be learned from so few clicks is left
    out, with its reason in ``failures``.
    """

    def __init__(
        self,
        base: Retriever,
        parts: Sequence[ClickModel],
        clicks: CorrectedClicks,
        gallery: LogGallery,
        *,
        fillers: IntArray | None = None,
        progress: Progress,
    ) -> None:
        self._base = base
        self._unfitted = {type(part).__name__: part for part in parts}
        self._clicks = clicks.select(gallery.row_of[clicks.item_ids] >= 0)
        self._gallery = gallery
        self._fillers = fillers
        self._progress = progress
        self.failures: dict[str, str] = {}

    def lists(self, queries: BoolArray) -> JudgedLists:
        """Return the judged lists of some queries."""
        return JudgedLists.of(self._clicks.of_queries(queries), self._gallery.row_of, fillers=self._fillers)

    def scores(self, retriever: Retriever, lists: JudgedLists) -> list[FloatArray]:
        """Return a retriever's scores of lists."""

        def compare(queries: Sequence[str], features: AnyArray) -> FloatArray:
            points = retriever.encode_texts(list(queries)), retriever.images_to_points(features)
            return retriever.space.compare(*points, "text_query")

        return lists.scores(compare, self._gallery.features)

    def answered(self, queries: BoolArray, lists: JudgedLists) -> float:
        """Return the share of lists whose query a model learned from other queries has something to say about."""
        parts = list(self._fitted(queries, None, "learning models of the log").values())
        known = [any(part.answers(query) for part in parts) for query in lists.queries]
        return float(np.mean(known))

    def weights(
        self, learned_from: BoolArray, judged_on: BoolArray, measure: Measure, seed: int
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return what the retriever and each model weigh, and the scale of their scores."""
        parts = self._fitted(learned_from, None, "learning models of the log")
        lists = self.lists(judged_on)
        scores = {PRESENT: self.scores(self._base, lists)}
        scores |= {name: lists.scores(part.scores, self._gallery.features) for name, part in parts.items()}
        scales = {name: _spread(found) for name, found in scores.items()}
        kept = [name for name in scores if scales[name] > 0]
        if PRESENT not in kept:
            raise InvalidInputError("the retriever gives all items of a query one score; there is nothing to weigh")
        if len(kept) == 1:
            return {PRESENT: 1.0}, scales
        stacked = [np.stack([scores[name][row] / scales[name] for name in kept]) for row in range(len(lists))]
        self._progress("weighing the models", 0, 1)
        ascent = CoordinateAscent(measure=measure, seed=seed).fit(stacked, list(lists.grades))
        self._progress("weighing the models", 1, 1)
        found = np.maximum(np.asarray(ascent.weights_, dtype=np.float64), 0.0)
        # Queries that the log says nothing about are answered by the retriever alone: it never loses its say.
        found[0] = max(found[0], _LEAST_PRESENT * found.sum())
        return dict(zip(kept, (found / found.sum()).tolist(), strict=True)), scales

    def fused(
        self, learned_from: BoolArray, weights: dict[str, float], scales: dict[str, float], name: str
    ) -> Retriever:
        """Return the fusion with models learned from some queries."""
        used = [part for part, weight in weights.items() if weight > 0 and part != PRESENT]
        parts = self._fitted(learned_from, used, "learning models of the log")
        if not parts:
            return self._base
        names = [PRESENT, *parts]
        return fused_retriever(
            self._base,
            list(parts.values()),
            weights=[weights[part] for part in names],
            scales=[scales[part] for part in names],
            pictures=self._gallery.features,
            name=name,
        )

    def _fitted(self, learned_from: BoolArray, names: Sequence[str] | None, doing: str) -> dict[str, ClickModel]:
        log = self._clicks.of_queries(learned_from).log()
        row_of = dict(zip(self._clicks.items, self._gallery.row_of.tolist(), strict=True))
        features = self._gallery.features[log.image_rows(row_of)]
        wanted = list(self._unfitted) if names is None else list(names)
        fitted: dict[str, ClickModel] = {}
        for number, name in enumerate(wanted):
            self._progress(doing, number, len(wanted))
            try:
                fitted[name] = clone(self._unfitted[name]).fit_clicks(log, features)
            except InvalidInputError as problem:
                self.failures[name] = str(problem)
        self._progress(doing, len(wanted), len(wanted))
        return fitted


def _spread(scores: Sequence[FloatArray]) -> float:
    """Return the standard deviation of scores within a query, over all queries."""
    if not scores:
        return 0.0
    variances = [float(np.var(own.astype(np.float64))) for own in scores]
    return float(np.sqrt(np.mean(variances)))
