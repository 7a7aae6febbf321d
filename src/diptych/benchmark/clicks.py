"""Methods for click logs compared on human judgements of web-like queries: each measured once, and their fusions."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray, row_blocks, unit_rows
from diptych.atomic_files import atomic_write
from diptych.benchmark.click_data import JudgedLists, WebData
from diptych.benchmark.runner import PeakMemory, Stage, silent_stage
from diptych.encoders import (
    FeatureCache,
    ImageNetLabels,
    MeanWordVectors,
    TfidfTopics,
    Visualness,
    clean_query,
    imagenet_labels,
    label_vectors,
    load_word_vectors,
)
from diptych.errors import UnknownNameError
from diptych.estimators import clone
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
from diptych.models import (
    CCA,
    PSI,
    ConSE,
    CoordinateAscent,
    CrossModalModel,
    DeViSE,
    Image2Text,
    ImageAnnotation,
    OnlineClassification,
    Preprocessed,
    QueryBasedScoring,
    Text2Image,
    fuse_scores,
)
from diptych.models.clicks.click_model import ClickModel
from diptych.protocols import QueryGroups

Scores = Callable[[Sequence[str], str], FloatArray]
"""Scores queries against the pictures of a part, (queries, pictures); larger is better."""

# Pairs with two clicks and more, as the authors' released code takes them; few passes, since the log is small.
_TRAINING: dict[str, Any] = {"min_clicks": 2.0, "epochs": 6}
_REVISION = 2
_DEVELOPMENT = "captions"


@dataclass(frozen=True)
class WebScorer:
    """How a method learns from the data with one kind of image features.

    ``settings`` tell it from others of its kind, as plain values.
    """

    settings: Mapping[str, Any]
    fit: Callable[[WebData, str], Scores]


def click_scorer(model: ClickModel) -> WebScorer:
    """Return what fits a click model on the log."""

    def fit(data: WebData, feature: str) -> Scores:
        fitted: ClickModel = clone(model).fit_clicks(data.log, data.logged(feature))
        return lambda queries, part: fitted.scores(list(queries), data.features[feature][part])

    return WebScorer({"model": type(model).__name__, **model.get_params()}, fit)


def conse_scorer() -> WebScorer:
    """Return ConSE: a picture is the mean vector of its ten likeliest ImageNet labels, a query that of its words.

    The network's own classifier makes probabilities of its features, so no picture is read again, and nothing learned.
    """

    def fit(data: WebData, feature: str) -> Scores:
        table = load_word_vectors()
        words, labels = MeanWordVectors(vectors=table), ImageNetLabels(network=feature)
        vectors, _ = label_vectors([label.lemmas[0] for label in imagenet_labels()], table)
        some = labels.probabilities(data.features[feature]["dev"][:2])
        model = ConSE(label_vectors=vectors).fit(some, vectors[: len(some)])

        def scores(queries: Sequence[str], part: str) -> FloatArray:
            probabilities = labels.probabilities(data.features[feature][part])
            return model.similarity(probabilities, words.transform(list(queries))).T

        return scores

    return WebScorer({"model": "ConSE", "n_labels": 10, "vectors": "auto"}, fit)


def retriever_scorer() -> WebScorer:
    """Return CCA of the training pictures and their whole captions, as a retriever starts with."""
    unfitted = Preprocessed(model=CCA(n_components=256, regularization=1.0, weight_power=0.5), images="l2")

    def fit(data: WebData, feature: str) -> Scores:
        cache, train = FeatureCache(), data.splits.train
        texts = cache.encode(data.text_encoder, list(train.texts))
        model = clone(unfitted).fit(data.features[feature]["train"][train.owners], texts)

        def scores(queries: Sequence[str], part: str) -> FloatArray:
            asked = cache.encode(data.text_encoder, list(queries))
            similarity: FloatArray = model.similarity(data.features[feature][part], asked)
            return similarity.T

        return scores

    parameters = unfitted.get_params().items()
    settings = {key: value for key, value in parameters if not isinstance(value, CrossModalModel)}
    return WebScorer(settings, fit)


def clicked_cca_scorer() -> WebScorer:
    """Return CCA of the log alone: clicked pictures and topics of the words that they were clicked for."""
    words = TfidfTopics(n_components=256)
    model = CCA(n_components=256, regularization=1.0, weight_power=0.5)

    def fit(data: WebData, feature: str) -> Scores:
        log, images = data.log, unit_rows(data.logged(feature))
        encoder = clone(words).fit(list(log.queries))
        texts = encoder.transform(list(log.queries))
        pairs = np.flatnonzero(log.clicks >= _TRAINING["min_clicks"])
        fitted = clone(model)
        blocks = [pairs[rows] for rows in row_blocks(len(pairs))]
        sums = (fitted.moments(images[log.image_ids[rows]], texts[log.query_ids[rows]]) for rows in blocks)
        fitted.fit_moments(reduce(lambda one, other: one.merge(other), sums))

        def scores(queries: Sequence[str], part: str) -> FloatArray:
            asked = encoder.transform(list(queries))
            similarity: FloatArray = fitted.similarity(unit_rows(data.features[feature][part]), asked)
            return similarity.T

        return scores

    return WebScorer({"model": "CCA of clicks", **model.get_params(), **words.get_params()}, fit)


@dataclass(frozen=True)
class WebMethod:
    """A method, and whether it is a part of the fusions."""

    name: str
    scorer: WebScorer
    is_fused: bool = True


def web_methods() -> dict[str, WebMethod]:
    """Return every method of the comparison by its name.

    Fusions are of the paper's methods that learn from the log: without ConSE they do better on the development part.
    """
    methods = (
        WebMethod("image2text", click_scorer(Image2Text())),
        WebMethod("image-annotation", click_scorer(ImageAnnotation()), False),
        WebMethod("text2image", click_scorer(Text2Image())),
        WebMethod("query-based-scoring", click_scorer(QueryBasedScoring()), False),
        WebMethod("online-classification", click_scorer(OnlineClassification()), False),
        WebMethod("psi", click_scorer(PSI(**_TRAINING))),
        WebMethod("devise", click_scorer(DeViSE(**_TRAINING))),
        WebMethod("conse", conse_scorer(), False),
        WebMethod("cca", clicked_cca_scorer(), False),
        WebMethod("retriever", retriever_scorer(), False),
    )
    return {method.name: method for method in methods}


@dataclass(frozen=True, eq=False)
class WebRun:
    """The scores a method gives to every list, and what learning and scoring cost; seconds are of processor time."""

    method: str
    feature: str
    scores: Mapping[str, FloatArray]
    fit_seconds: float
    fit_megabytes: float
    test_seconds: float
    test_megabytes: float


def measure_run(data: WebData, method: WebMethod, feature: str, folder: Path | None = None) -> WebRun:
    """Fit and score, or read what an earlier run of the same settings on the same data left in ``folder``."""
    settings = method.scorer.settings
    file = None if folder is None else folder / f"{method.name}-{feature}-{_digest(data, settings, feature)}.npz"
    if file is not None and file.is_file():
        return _read(file, method.name, feature)
    start = time.process_time()
    with PeakMemory() as fitting:
        fitted_scores = method.scorer.fit(data, feature)
    fitted = time.process_time()
    with PeakMemory() as testing:
        scores = {
            name: np.asarray(fitted_scores(lists.queries, part), dtype=np.float32)
            for name, (lists, part) in data.every_list().items()
        }
    costs = (fitted - start, fitting.megabytes, time.process_time() - fitted, testing.megabytes)
    run = WebRun(method.name, feature, scores, *costs)
    if file is not None:
        _write(file, run, costs)
    return run


def _digest(data: WebData, settings: Mapping[str, object], feature: str) -> str:
    """Return a name for everything the scores depend on."""
    plain = json.dumps({name: repr(value) for name, value in settings.items()}, sort_keys=True)
    digest = hashlib.sha256(f"{_REVISION} {feature} {plain}".encode())
    for array in (data.log.query_ids, data.log.image_ids, data.log.clicks):
        digest.update(array.tobytes())
    digest.update("\n".join(data.log.queries).encode())
    for lists, part in data.every_list().values():
        digest.update("\n".join(lists.queries).encode())
        digest.update(data.features[feature][part].tobytes())
    return digest.hexdigest()[:24]


def _read(file: Path, method: str, feature: str) -> WebRun:
    with np.load(file, allow_pickle=False) as stored:
        scores = {name.removeprefix("scores/"): stored[name] for name in stored.files if name.startswith("scores/")}
        return WebRun(method, feature, scores, *stored["costs"].tolist())


def _write(file: Path, run: WebRun, costs: tuple[float, ...]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {f"scores/{name}": values for name, values in run.scores.items()}
    with atomic_write(file) as draft, draft.open("wb") as stream:
        np.savez(stream, costs=np.array(costs), **arrays)


@dataclass(frozen=True, eq=False)
class FusedRuns:
    """A weighted sum of standardised scores: each part's scores of a list have mean 0 and deviation 1.

    Dong et al. (2018) put scores through a sigmoid; z-scores, which that equation leaves to the reader, keep parts of
    different scales comparable.
    """

    parts: tuple[WebRun, ...]
    weights: FloatArray

    @classmethod
    def average(cls, parts: Sequence[WebRun]) -> FusedRuns:
        """Return the fusion with equal weights."""
        return cls(tuple(parts), np.full(len(parts), 1 / len(parts)))

    @classmethod
    def learned(
        cls,
        parts: Sequence[WebRun],
        development: JudgedLists,
        queries: IntArray | None = None,
        *,
        restarts: int = 2,
        trials: int = 12,
        seed: int = 0,
    ) -> FusedRuns:
        """Return the fusion whose weights coordinate ascent finds on queries of the development part."""
        standard = [fuse_scores([part.scores[_DEVELOPMENT]], rescale="zscore") for part in parts]
        chosen = np.arange(len(development.queries)) if queries is None else queries
        scores, grades = [], []
        for query in chosen.tolist():
            columns, own = development.candidates(query)
            scores.append(np.stack([part[query, columns] for part in standard]))
            grades.append(own)
        ascent = CoordinateAscent(measure=NDCG(), restarts=restarts, trials=trials, random_state=seed).fit(
            scores, grades
        )
        return cls(tuple(parts), ascent.weights_)

    def scores(self, name: str) -> FloatArray:
        """Return the fused scores of a list."""
        return fuse_scores([part.scores[name] for part in self.parts], self.weights, rescale="zscore")

    @property
    def shares(self) -> Mapping[str, float]:
        """The weight of each part by its name."""
        names = (f"{part.method} {part.feature}" for part in self.parts)
        return dict(zip(names, self.weights.tolist(), strict=True))


AVERAGE_FUSION = "average fusion"
LEARNED_FUSION = "learned fusion"
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
        return (*names, AVERAGE_FUSION, LEARNED_FUSION) if len(self._fused_methods) > 1 else names

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
        neighbours = {
            row: dict(zip(NEIGHBOUR_COUNTS, self.neighbour_curve(row, "experts", NEIGHBOUR_COUNTS), strict=True))
            for row in NEIGHBOUR_MODELS
        }
        tables: dict[str, Any] = {
            "lists": lists,
            "experts": self._analysis_json("experts"),
            "neighbours": neighbours,
            "costs": costs,
        }
        if LEARNED_FUSION in self.rows:
            column = self.columns[-1]
            tables["fusion"] = {"weights": dict(self.weights(column)), "held_out": self.held_out_fusion(column)}
        return {"log": repr(self.data.log), **tables, **self._noise_json("experts")}

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


def chosen_methods(names: Collection[str] | None) -> list[WebMethod]:
    """Return the methods of these names, all without any; a typo gets a suggestion."""
    known = web_methods()
    for name in names or ():
        if name not in known:
            raise UnknownNameError("method of the click benchmark", name, known)
    return [method for name, method in known.items() if not names or name in names]
