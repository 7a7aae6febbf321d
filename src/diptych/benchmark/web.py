"""Methods for click logs compared on human judgements of web-like queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import BoolArray, FloatArray
from diptych.benchmark.runner import BenchmarkReport, Stage, select_methods, silent_stage
from diptych.benchmark.studies.web_data import (
    FEATURES,
    JudgedLists,
    WebData,
    caption_lists,
    class_lists,
    crowd_lists,
    expert_lists,
    flickr8k_web,
    simulate_clicks,
    word_lists,
)
from diptych.benchmark.studies.web_methods import FusedRuns, WebMethod, WebRun, measure_run, web_methods
from diptych.encoders import Visualness, clean_query
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
from diptych.models import Image2Text, Text2Image
from diptych.protocols import QueryGroups

__all__ = [
    "FEATURES",
    "FusedRuns",
    "JudgedLists",
    "WebData",
    "WebMethod",
    "WebReport",
    "WebRun",
    "caption_lists",
    "class_lists",
    "crowd_lists",
    "expert_lists",
    "flickr8k_web",
    "measure_run",
    "run_web",
    "simulate_clicks",
    "web_methods",
    "word_lists",
]

AVERAGE_FUSION = "average fusion"
LEARNED_FUSION = "learned fusion"
RANDOM_ROW = "random"
FEATURE_FUSION = "feature fusion"
_PEOPLE = frozenset({"man", "woman", "boy", "girl", "child", "people", "person", "kid", "baby", "lady", "guy", "crowd"})
_WORDS = "words"
NEIGHBOUR_MODELS: Mapping[str, type[Image2Text | Text2Image]] = {"image2text": Image2Text, "text2image": Text2Image}
NEIGHBOUR_COUNTS = tuple(range(10, 151, 20))
"""The methods whose number of neighbours Figure 8 of the paper varies, and the numbers that it tries."""
# Of Dong et al. (2018): the best of their grades, and how far down a list they look.
_EXCELLENT = 3
_CUTOFF = 25


class WebReport(BenchmarkReport):
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
        self._noisy: dict[tuple[str, int, int], JudgedLists] = {}
        self._curves: dict[tuple[str, str, tuple[int, ...]], list[tuple[float, float]]] = {}

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the methods, then the fusions if there is something to fuse."""
        names = tuple(method.name for method in self.methods)
        return (*names, AVERAGE_FUSION, LEARNED_FUSION) if len(self._fused_methods) > 1 else names

    @property
    def columns(self) -> tuple[str, ...]:
        """The image features, then their fusion if there are two."""
        return (*self.features, FEATURE_FUSION) if len(self.features) > 1 else self.features

    @property
    def title_of(self) -> dict[str, str]:
        """What a row is called in tables."""
        titles = {method.name: method.title for method in self.methods}
        return titles | {
            AVERAGE_FUSION: "method fusion, average",
            LEARNED_FUSION: "method fusion, learned",
            RANDOM_ROW: RANDOM_ROW,
        }

    def measure(self, name: str) -> Measure:
        """Return what a list is measured by: MAP of single words, NDCG@25 of graded lists."""
        return AP() if name == _WORDS else NDCG()

    def values(self, row: str, column: str, name: str, fold: int = 0) -> FloatArray:
        """Return the measure of every query of a list, with ``fold`` times noise, mean over seeds."""
        key = (row, column, name, fold)
        if key not in self._values:
            scores, measure = self._scores_of(row, column, name), self.measure(name)
            draws = [
                evaluate_scores(scores, self._lists(name, fold, seed).relevance, [measure], empty="zero").values[
                    measure
                ]
                for seed in range(self.seeds if fold else 1)
            ]
            self._values[key] = np.mean(draws, axis=0)
        return self._values[key]

    def mean(self, row: str, column: str, name: str, fold: int = 0) -> float:
        """Return the mean over queries."""
        return float(self.values(row, column, name, fold).mean())

    def upper_bound(self, name: str) -> float:
        """Return what a ranking by the grades themselves reaches."""
        lists, measure = self.data.every_list()[name][0], self.measure(name)
        return evaluate_scores(lists.grades.toarray(), lists.relevance, [measure], empty="zero")[measure]

    def compare(self, row: str, other: str, column: str, name: str) -> RandomisationTest:
        """Test whether two rows differ on the queries of a list; either may be ``random``."""
        return randomisation_test(self.values(row, column, name), self.values(other, column, name), trials=self.trials)

    def noise_curve(self, row: str, column: str, name: str, folds: Sequence[int]) -> list[float]:
        """Return the mean at each fold of noise."""
        return [self.mean(row, column, name, fold) for fold in folds]

    def visualness(self, name: str) -> FloatArray:
        """Return the visualness of a list's queries."""
        measure = Visualness() if self._visualness is None else self._visualness
        return measure.scores(self.data.every_list()[name][0].queries)

    def group_means(self, row: str, column: str, name: str, fold: int = 1) -> list[float]:
        """Return the mean of each of the five groups of visualness."""
        means: list[float] = QueryGroups().means(self._visual[name], self.values(row, column, name, fold)).tolist()
        return means

    def group_sizes(self, name: str) -> list[int]:
        """Return how many queries each group of visualness has."""
        sizes: list[int] = np.bincount(QueryGroups().of(self._visual[name]), minlength=5).tolist()
        return sizes

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
                values = evaluate_scores(scores, lists.relevance, [NDCG()], empty="zero").values[NDCG()]
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
        parts = self._parts(column)
        measured = {}
        for name, fusion in (
            (LEARNED_FUSION, FusedRuns.learned(parts, development, first)),
            (AVERAGE_FUSION, FusedRuns.average(parts)),
        ):
            scores = fusion.scores("captions")[second]
            measured[name] = evaluate_scores(scores, development.select(second).relevance, [NDCG()]).values[NDCG()]
        test = randomisation_test(measured[LEARNED_FUSION], measured[AVERAGE_FUSION], trials=self.trials)
        return {name: float(values.mean()) for name, values in measured.items()} | {"p": test.p_value}

    def weights(self, column: str) -> Mapping[str, float]:
        """Return the learned weight of each part of a column."""
        return self._learned(column).shares

    def as_json(self) -> dict[str, Any]:
        """Return every table as plain values."""
        lists = {name: self._list_json(name) for name in self.data.every_list()}
        costs = {
            f"{method} {feature}": {
                "fit_seconds": run.fit_seconds,
                "fit_megabytes": run.fit_megabytes,
                "test_seconds": run.test_seconds,
                "test_megabytes": run.test_megabytes,
            }
            for (method, feature), run in self.runs.items()
        }
        neighbours = {
            row: dict(zip(NEIGHBOUR_COUNTS, self.neighbour_curve(row, "experts", NEIGHBOUR_COUNTS), strict=True))
            for row in NEIGHBOUR_MODELS
        }
        experts = self._analysis_json("experts")
        return {
            "log": repr(self.data.log),
            "lists": lists,
            "experts": experts,
            "neighbours": neighbours,
            "costs": costs,
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
        return {
            "group_sizes": self.group_sizes(name),
            "group_means": {
                f"{fold}-fold noise": {row: _or_none(self.group_means(row, column, name, fold)) for row in rows}
                for fold in (0, 1)
            },
            "spearman": {
                row: dict(zip(found, _or_none(one.coefficient for one in found.values()), strict=True))
                for row, found in ((row, self.correlations(row, column, name)) for row in self.rows)
            },
            "people": {row: _or_none([self.values(row, column, name)[people].mean()])[0] for row in rows},
            "fewer_than_25_excellent": int((excellent < _CUTOFF).sum()),
            "percent_in_log": 100 * len(asked & logged) / len(asked),
        }

    @cached_property
    def _visual(self) -> dict[str, FloatArray]:
        return {name: self.visualness(name) for name in self.data.every_list()}

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

    @cached_property
    def _weights(self) -> dict[str, FusedRuns]:
        return {}

    def _scores_of(self, row: str, column: str, name: str) -> FloatArray:
        key = (row, column, name)
        if key not in self._scores:
            self._scores[key] = self._fused_scores(row, column, name)
        return self._scores[key]

    def _fused_scores(self, row: str, column: str, name: str) -> FloatArray:
        if row == RANDOM_ROW:
            # Equal scores: measures are exact expectations over random orders.
            return np.zeros(self.data.every_list()[name][0].grades.shape, dtype=np.float32)
        if row == AVERAGE_FUSION:
            return FusedRuns.average(self._parts(column)).scores(name)
        if row == LEARNED_FUSION:
            return self._learned(column).scores(name)
        if column == FEATURE_FUSION:
            return FusedRuns.average([self.runs[row, feature] for feature in self.features]).scores(name)
        return self.runs[row, column].scores[name]

    def _lists(self, name: str, fold: int, seed: int) -> JudgedLists:
        key = (name, fold, seed)
        if key not in self._noisy:
            lists = self.data.every_list()[name][0]
            self._noisy[key] = lists.with_noise(fold, seed) if fold else lists
        return self._noisy[key]


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
            with enter(f"{method.title}, {feature}"):
                runs.append(measure_run(data, method, feature, None if folder is None else Path(folder)))
    return WebReport(data, chosen, runs, seeds=seeds)


def chosen_methods(names: Collection[str] | None) -> list[WebMethod]:
    """Return the methods of these names, all without any; a typo gets a suggestion."""
    return list(select_methods("method of the click benchmark", web_methods(), names, as_declared=True).values())
