"""Methods for click logs compared on human judgements of web-like queries: every table of the comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import BoolArray, FloatArray
from diptych.benchmark.click_data import JudgedLists, WebData
from diptych.benchmark.click_methods import (
    FusedRuns,
    WebMethod,
    WebRun,
    chosen_methods,
    measure_run,
)
from diptych.benchmark.runner import Stage, silent_stage
from diptych.encoders import (
    Visualness,
    clean_query,
)
from diptych.metrics import (
    AP,
    NDCG,
    Measure,
    RandomisationTest,
    SpearmanCorrelation,
    evaluate_scores,
    randomisation_test,
    spearman,
)
from diptych.models import Image2Text, Text2Image, fuse_scores
from diptych.protocols import QueryGroups

AVERAGE_FUSION = "average fusion"
LEARNED_FUSION = "learned fusion"
PAPER_FUSION = "sigmoid fusion"
RANDOM_ROW = "random"
TITLES: Mapping[str, str] = {
    "image-annotation": "image2text, words",
    "query-based-scoring": "query-based scoring",
    "online-classification": "online classification",
    "psi": "PSI",
    "devise": "DeViSE",
    "conse": "ConSE",
    "cca": "CCA",
    "retriever": "our retriever (captions)",
    AVERAGE_FUSION: "method fusion, average",
    LEARNED_FUSION: "method fusion, learned",
    PAPER_FUSION: "five methods, sigmoid",
}
"""What tables call the rows whose names are other words."""
DRAWN_FOLDS = tuple(range(11))
_PRINTED_FOLDS = (0, 1, 2, 5, 10)
_CORRELATED = "devise"
FEATURE_FUSION = "feature fusion"
_PEOPLE = frozenset({"man", "woman", "boy", "girl", "child", "people", "person", "kid", "baby", "lady", "guy", "crowd"})
_WORDS = "words"
NEIGHBOUR_MODELS: Mapping[str, type[Image2Text | Text2Image]] = {"image2text": Image2Text, "text2image": Text2Image}
NEIGHBOUR_COUNTS = tuple(range(10, 151, 20))
"""The methods whose number of neighbours Figure 8 of the paper varies, and the numbers that it tries."""
# Of Dong et al. (2018): the best of their grades, and how far down a list they look.
_EXCELLENT = 3
_CUTOFF = 25
_JUDGED = "experts"
RANKS = (1, 5, 10, 15, 20, 25)
_PAPER_METHODS = ("image2text", "text2image", "psi", "devise", "conse")
_SHOWN_QUERIES = 5


class WebReport:
    """Every table of the comparison, computed from the scores when it is asked for.

    Rows are methods and the two fusions over methods; columns are the image features and the fusion over features.
    ``seeds`` are the draws of noise that are averaged, ``trials`` those of the randomisation test. ``visualness``
    measures queries; None takes ImageNet's concepts.
    """

    def __init__(
        self,
        data: WebData,
        methods: Sequence[WebMethod],
        runs: Iterable[WebRun],
        *,
        seeds: int = 5,
        trials: int = 20_000,
        visualness: Visualness | None = None,
    ) -> None:
        self.data = data
        self.methods = tuple(methods)
        self.runs: Mapping[tuple[str, str], WebRun] = {(run.method, run.feature): run for run in runs}
        self.features = tuple(dict.fromkeys(feature for _, feature in self.runs))
        self.seeds = seeds
        self.trials = trials
        self._visualness = visualness
        self._scores: dict[tuple[str, str, str], FloatArray] = {}
        self._values: dict[tuple[str, str, str, int], FloatArray] = {}
        self._noisy: dict[tuple[str, int], list[JudgedLists]] = {}
        self._curves: dict[tuple[str, str, tuple[int, ...]], list[tuple[float, float]]] = {}
        self._weights: dict[str, FusedRuns] = {}

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the methods, then the fusions if there is something to fuse."""
        names = tuple(method.name for method in self.methods)
        paper = (PAPER_FUSION,) if set(_PAPER_METHODS) <= set(names) else ()
        return (*names, AVERAGE_FUSION, LEARNED_FUSION, *paper) if len(self._fused_methods) > 1 else names

    @property
    def columns(self) -> tuple[str, ...]:
        """The image features, then their fusion if there are two."""
        return (*self.features, FEATURE_FUSION) if len(self.features) > 1 else self.features

    @property
    def fused_rows(self) -> tuple[str, ...]:
        """The methods that are parts of the fusions, and the fusions."""
        return (*self._fused_methods, AVERAGE_FUSION, LEARNED_FUSION)

    @property
    def correlated_row(self) -> str:
        """The method whose values figure 10 correlates with those of the queries."""
        return _CORRELATED if _CORRELATED in self.rows else self.rows[0]

    def measure(self, name: str) -> Measure:
        """Return what a list is measured by: MAP of single words, NDCG@25 of graded lists."""
        return AP() if name == _WORDS else NDCG()

    def values(self, row: str, column: str, name: str, fold: int = 0) -> FloatArray:
        """Return the measure of every query of a list, with ``fold`` times noise, mean over seeds."""
        key = (row, column, name, fold)
        if key not in self._values:
            scores, measure = self._scores_of(row, column, name), self.measure(name)
            draws = [measured(scores, lists, measure) for lists in self._noisy_lists(name, fold)]
            self._values[key] = np.mean(draws, axis=0)
        return self._values[key]

    def mean(self, row: str, column: str, name: str, fold: int = 0) -> float:
        """Return the mean over queries."""
        return float(self.values(row, column, name, fold).mean())

    def upper_bound(self, name: str) -> float:
        """Return what a ranking by the grades themselves reaches."""
        lists, measure = self.data.every_list()[name][0], self.measure(name)
        return float(measured(lists.grades.toarray(), lists, measure).mean())

    def compare(self, row: str, other: str, column: str, name: str) -> RandomisationTest:
        """Test whether two rows differ on the queries of a list; either may be ``random``."""
        return randomisation_test(self.values(row, column, name), self.values(other, column, name), trials=self.trials)

    def noise_curve(self, row: str, column: str, name: str, folds: Sequence[int]) -> list[float]:
        """Return the mean at each fold of noise."""
        return [self.mean(row, column, name, fold) for fold in folds]

    def group_means(self, row: str, column: str, name: str, fold: int = 1) -> list[float]:
        """Return the mean of each of the five groups of visualness."""
        return [*map(float, QueryGroups().means(self._visual[name], self.values(row, column, name, fold)))]

    def group_sizes(self, name: str) -> list[int]:
        """Return how many queries each group of visualness has."""
        return [*map(int, np.bincount(QueryGroups().of(self._visual[name]), minlength=5))]

    def correlations(self, row: str, column: str, name: str, fold: int = 0) -> dict[str, SpearmanCorrelation]:
        """Return Spearman's correlation of a row's values with visualness, and with one over the length of queries."""
        lengths = [max(1, len(clean_query(query))) for query in self.data.every_list()[name][0].queries]
        values = self.values(row, column, name, fold)
        return {
            "visualness": spearman(values, self._visual[name]),
            "1/length": spearman(values, 1 / np.array(lengths)),
        }

    def neighbour_curve(self, row: str, name: str, counts: Sequence[int]) -> list[tuple[float, float]]:
        """Return the mean and its standard error with so many neighbours of image2text or text2image, first feature.

        The model is fitted once, since it looks neighbours up when it is asked.
        """
        key = (row, name, tuple(counts))
        if key not in self._curves:
            (lists, part), feature = self.data.every_list()[name], self.features[0]
            model = NEIGHBOUR_MODELS[row]().fit_clicks(self.data.log, self.data.logged(feature))
            self._curves[key] = []
            for count in counts:
                scores = model.set_params(n_neighbours=count).scores(lists.queries, self.data.features[feature][part])
                values = measured(scores, lists, NDCG())
                self._curves[key].append((float(values.mean()), standard_error(values)))
        return self._curves[key]

    def people_queries(self, name: str) -> BoolArray:
        """Return which queries of a list name a person."""
        queries = self.data.every_list()[name][0].queries
        return np.array([bool(_PEOPLE & set(clean_query(query))) for query in queries])

    def held_out_fusion(self, column: str) -> dict[str, float]:
        """Learn weights on one half of the development queries and compare with equal ones on the other."""
        development = self.data.development
        order = np.random.default_rng(0).permutation(len(development.queries))
        first, second = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
        parts, asked = self._parts(column), development.select(second)
        learned, average = (
            measured(fusion.scores("captions")[second], asked, NDCG())
            for fusion in (FusedRuns.learned(parts, development, first), FusedRuns.average(parts))
        )
        p_value = randomisation_test(learned, average, trials=self.trials).p_value
        return {LEARNED_FUSION: float(learned.mean()), AVERAGE_FUSION: float(average.mean()), "p": p_value}

    def weights(self, column: str) -> Mapping[str, float]:
        """Return the learned weight of each part of a column."""
        return self._learned(column).shares

    def as_json(self) -> dict[str, Any]:
        """Return every table as plain values."""
        lists = {name: self._list_json(name) for name in self.data.every_list()}
        costs = {
            f"{method} {feature}": {
                f"{part}_{unit}": getattr(run, f"{part}_{unit}")
                for part in ("fit", "test")
                for unit in ("seconds", "megabytes")
            }
            for (method, feature), run in self.runs.items()
        }
        tables: dict[str, Any] = {"lists": lists, "costs": costs}
        if _JUDGED in lists:
            neighbours = {
                row: dict(zip(NEIGHBOUR_COUNTS, self.neighbour_curve(row, _JUDGED, NEIGHBOUR_COUNTS), strict=True))
                for row in NEIGHBOUR_MODELS
            }
            tables |= {"experts": self._analysis_json(_JUDGED), "neighbours": neighbours}
            tables |= {"ranks": self._ranks_json(_JUDGED), "answers": self._answers_json(_JUDGED)}
            tables |= self._noise_json(_JUDGED)
        if LEARNED_FUSION in self.rows:
            column = self.columns[-1]
            tables["fusion"] = {"weights": dict(self.weights(column)), "held_out": self.held_out_fusion(column)}
        return {"log": repr(self.data.log), **tables}

    def _ranks_json(self, name: str) -> dict[str, dict[int, float]]:
        """Return the mean NDCG of every row at several ranks (figure 5 of the paper), in the last column."""
        lists = self.data.every_list()[name][0]
        return {
            row: {
                rank: float(measured(self._scores_of(row, self.columns[-1], name), lists, NDCG(rank)).mean())
                for rank in RANKS
            }
            for row in (RANDOM_ROW, *self.rows)
        }

    def _answers_json(self, name: str) -> list[dict[str, Any]]:
        """Return a few queries, from the least to the most visual, with the first pictures of every row (Table VI)."""
        (lists, part), column = self.data.every_list()[name], self.columns[-1]
        ids = self.data.splits.parts[part].ids
        order = np.argsort(self._visual[name], kind="stable")
        chosen = order[np.linspace(0, len(order) - 1, min(_SHOWN_QUERIES, len(order))).round().astype(int)]
        found = []
        for query in dict.fromkeys(chosen.tolist()):
            pictures, grades = lists.candidates(query)
            answers = {}
            for row in self.rows:
                best = np.argsort(-self._scores_of(row, column, name)[query, pictures], kind="stable")[:_SHOWN_QUERIES]
                answers[row] = [[str(ids[pictures[place]]), float(grades[place])] for place in best]
            facts = {"query": lists.queries[query], "visualness": float(self._visual[name][query])}
            found.append({**facts, "answers": answers})
        return found

    def _noise_json(self, name: str) -> dict[str, Any]:
        """Return what noise among the candidates does to every row, and to what predicts the answers of one."""
        column, row = self.columns[-1], self.correlated_row
        by_fold = {fold: self.correlations(row, column, name, fold) for fold in _PRINTED_FOLDS}
        return {
            "noise": {
                each: {fold: self.mean(each, column, name, fold) for fold in _PRINTED_FOLDS}
                for each in (RANDOM_ROW, *self.rows)
            },
            "correlations": {
                "row": row,
                "by_noise": {
                    kind: {
                        fold: _or_none([found[kind].coefficient, found[kind].p_value])
                        for fold, found in by_fold.items()
                    }
                    for kind in ("visualness", "1/length")
                },
            },
        }

    def _list_json(self, name: str) -> dict[str, Any]:
        lists, column = self.data.every_list()[name][0], self.columns[-1]
        return {
            "queries": len(lists.queries),
            "pictures": lists.grades.shape[1],
            "judged": lists.n_judged,
            "measure": self.measure(name).label,
            "random": self.mean(RANDOM_ROW, column, name),
            "upper_bound": self.upper_bound(name),
            "means": {row: {column: self.mean(row, column, name) for column in self.columns} for row in self.rows},
            "p_values": {
                f"{row} | {other}": self.compare(row, other, column, name).p_value
                for place, row in enumerate(self.rows)
                for other in (RANDOM_ROW, *self.rows[:place])
            },
            "values": {row: self.values(row, column, name).tolist() for row in self.rows},
        }

    def _analysis_json(self, name: str) -> dict[str, Any]:
        """Return which kinds of queries a list has, and how every row does on them in the last column."""
        lists, column, rows = self.data.every_list()[name][0], self.columns[-1], (RANDOM_ROW, *self.rows)
        people = self.people_queries(name)
        excellent = np.asarray((lists.grades == _EXCELLENT).sum(axis=1))
        asked, logged = (
            {tuple(clean_query(text)) for text in texts} for texts in (lists.queries, self.data.log.queries)
        )
        groups = QueryGroups().of(self._visual[name])
        return {
            "grades": {
                f"{grade:g}": [
                    int(np.asarray((lists.grades[groups == group].data == grade).sum())) for group in range(5)
                ]
                for grade in sorted(np.unique(lists.grades.data).tolist(), reverse=True)
            },
            "group_sizes": self.group_sizes(name),
            "group_means": {
                f"{fold}-fold noise": {row: _or_none(self.group_means(row, column, name, fold)) for row in rows}
                for fold in (0, 1)
            },
            "spearman": {
                row: dict(zip(found, _or_none(one.coefficient for one in found.values()), strict=True))
                for row, found in ((row, self.correlations(row, column, name)) for row in self.rows)
            },
            "people": {
                row: float(self.values(row, column, name)[people].mean()) if people.any() else None for row in rows
            },
            "fewer_than_25_excellent": int((excellent < _CUTOFF).sum()),
            "percent_in_log": 100 * len(asked & logged) / len(asked),
        }

    @cached_property
    def _visual(self) -> dict[str, FloatArray]:
        """The visualness of the queries of every list."""
        visualness = self._visualness or Visualness()
        return {name: visualness.scores(lists.queries) for name, (lists, _) in self.data.every_list().items()}

    @cached_property
    def _fused_methods(self) -> tuple[str, ...]:
        return tuple(method.name for method in self.methods if method.is_fused)

    def _parts(self, column: str) -> list[WebRun]:
        features = self.features if column == FEATURE_FUSION else (column,)
        return [self.runs[method, feature] for method in self._fused_methods for feature in features]

    def _learned(self, column: str) -> FusedRuns:
        if column not in self._weights:
            self._weights[column] = FusedRuns.learned(self._parts(column), self.data.development)
        return self._weights[column]

    def _scores_of(self, row: str, column: str, name: str) -> FloatArray:
        key = (row, column, name)
        if key not in self._scores:
            self._scores[key] = self._measured_or_fused_scores(row, column, name)
        return self._scores[key]

    def _measured_or_fused_scores(self, row: str, column: str, name: str) -> FloatArray:
        if row == RANDOM_ROW:
            # Equal scores: measures are exact expectations over random orders.
            return np.zeros(self.data.every_list()[name][0].grades.shape, dtype=np.float32)
        if row == AVERAGE_FUSION:
            return FusedRuns.average(self._parts(column)).scores(name)
        if row == LEARNED_FUSION:
            return self._learned(column).scores(name)
        if row == PAPER_FUSION:
            features = self.features if column == FEATURE_FUSION else (column,)
            parts = [self.runs[method, feature].scores[name] for method in _PAPER_METHODS for feature in features]
            return fuse_scores(parts, rescale="sigmoid")
        if column == FEATURE_FUSION:
            return FusedRuns.average([self.runs[row, feature] for feature in self.features]).scores(name)
        return self.runs[row, column].scores[name]

    def _noisy_lists(self, name: str, fold: int) -> list[JudgedLists]:
        """Return a list with every draw of noise; all rows and columns are measured on the same draws."""
        if (name, fold) not in self._noisy:
            lists = self.data.every_list()[name][0]
            draws = [lists.with_noise(fold, seed) for seed in range(self.seeds)] if fold else [lists]
            self._noisy[name, fold] = draws
        return self._noisy[name, fold]


def measured(scores: FloatArray, lists: JudgedLists, measure: Measure) -> FloatArray:
    """Return the measure of every query; one without a relevant picture has the worst value."""
    return evaluate_scores(scores, lists.relevance, [measure], empty="zero").values[measure]


def standard_error(values: FloatArray) -> float:
    """Return how far the mean over queries would be from that over other queries of the same kind."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _or_none(values: Iterable[float]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def run_web(
    data: WebData,
    *,
    methods: Collection[str] | None = None,
    folder: str | PathLike[str] | None = None,
    stage: Stage | None = None,
    seeds: int = 5,
) -> WebReport:
    """Fit and score every method, and return the report; in ``folder`` scores are kept, so that a run can go on.

    ``stage(title)`` is entered around each fit. ``seeds`` are the draws of noise that are averaged.
    """
    chosen = chosen_methods(methods)
    enter = stage or silent_stage
    runs = []
    for method in chosen:
        for feature in data.features:
            with enter(f"{TITLES.get(method.name, method.name)}, {feature}"):
                runs.append(measure_run(data, method, feature, None if folder is None else Path(folder)))
    return WebReport(data, chosen, runs, seeds=seeds)
