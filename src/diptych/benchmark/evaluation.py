"""One method on one data set, both named by a person: a task of the engine that is made when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_type_hints

import numpy as np

from diptych.arrays import BoolArray, FloatArray
from diptych.benchmark.methods import Plugin, method_of_class, plugin_classes
from diptych.benchmark.runner import Measured, Stage, measure_fold, silent_stage
from diptych.benchmark.task import Features, Method, Task
from diptych.data import Dataset, DatasetSplits, Pairs, find_dataset
from diptych.encoders import ColourEdgeHistograms, Encoder, TfidfTopics
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import (
    AP,
    CMC,
    NDCG,
    BootstrapInterval,
    CMCCurve,
    Curve,
    InterpolatedPrecisionRecall,
    MeanRank,
    Measure,
    MedianRank,
    Precision,
    PrecisionRecallCurve,
    RecallAtK,
    Ties,
    bootstrap_interval,
)
from diptych.models import CrossModalModel, Preprocessed, method_name, model_classes
from diptych.models.preprocessed import RowScaling
from diptych.models.registry import with_parameter
from diptych.protocols import Fold, HoldOut, Relevant, StandardSplit, TwoWayEvaluation
from diptych.space import DIRECTIONS, Direction

BY_LABEL: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), Precision(10), Precision(50), NDCG(10, "ideal"))
BY_INSTANCE: tuple[Measure, ...] = (AP(), RecallAtK(1), RecallAtK(5), RecallAtK(10), MedianRank(), MeanRank())
# A map shows what is among ten neighbours, of pictures and texts.
_MIN_MAPPED = 6
CURVES: tuple[Curve, ...] = (InterpolatedPrecisionRecall(), PrecisionRecallCurve(), CMCCurve())


@dataclass(frozen=True)
class Category:
    """MAP of the queries of one category; None where no query of it has a relevant item."""

    name: str
    images: int
    texts: int
    value: dict[Direction, float | None]
    chance: dict[Direction, float | None]


def by_category(evaluation: TwoWayEvaluation, chance: TwoWayEvaluation, pairs: Pairs) -> tuple[Category, ...]:
    """Return one row for each category that occurs in ``pairs``; a query with several labels counts in each."""
    return tuple(
        Category(
            name,
            int(members.sum()),
            int(members[pairs.owners].sum()),
            *(_both_ways(found, members, members[pairs.owners]) for found in (evaluation, chance)),
        )
        for name, members in _members(pairs).items()
        if members.any()
    )


def _members(pairs: Pairs) -> dict[str, BoolArray]:
    """Return which images belong to each category, in the data set's own order."""
    if pairs.labels is None:
        return {}
    if pairs.is_multi_label:
        return {name: pairs.labels[:, column] == 1 for column, name in enumerate(pairs.class_names)}
    names = pairs.image_classes()
    return {name: names == name for name in pairs.class_names or np.unique(names).tolist()}


def _both_ways(evaluation: TwoWayEvaluation, images: BoolArray, texts: BoolArray) -> dict[Direction, float | None]:
    asked: dict[Direction, BoolArray] = {"image_query": images, "text_query": texts}
    return {way: _mean(evaluation[way].values[AP()][asked[way]]) for way in DIRECTIONS}


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is measured: a task with its method, the pairs as the data set has them, and as the method reads them."""

    task: Task
    method: Method
    splits: DatasetSplits
    fold: Fold
    encoders: Mapping[str, Encoder]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out; ``chance`` is the same evaluation of a ranking that prefers nothing."""

    prepared: Prepared
    measured: Measured
    ties: Ties
    chance: TwoWayEvaluation
    intervals: Mapping[Direction, BootstrapInterval]
    categories: tuple[Category, ...]

    @property
    def model(self) -> CrossModalModel:
        """The fitted model: behind its scaling, or what a click model learned from captions."""
        fitted = self.measured.choice.model
        return getattr(fitted, "model_", fitted) if fitted.inputs == "items" else fitted

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain values, with MAP by category and the intervals of MAP."""
        categories = [
            {"name": one.name, "images": one.images, "texts": one.texts}
            | {way: {"map": one.value[way], "chance": one.chance[way]} for way in DIRECTIONS}
            for one in self.categories
        ]
        intervals = {way: {"level": one.level, "low": one.low, "high": one.high} for way, one in self.intervals.items()}
        encoders = {side: encoder.identity for side, encoder in self.prepared.encoders.items()}
        facts = {"ties": self.ties, "relevant": self.prepared.task.relevant, "encoders": encoders}
        return {**self.measured.record.as_json(), **facts, "intervals": intervals, "categories": categories}


@dataclass(frozen=True)
class Evaluation:
    """Settings of one evaluation: a data set, a method of the package or of a plugin, and how it is measured."""

    dataset: str
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dataset_options: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Any] = field(default_factory=dict)
    image_encoder: Encoder | None = None
    text_encoder: Encoder | None = None
    images: RowScaling = "l2"
    texts: RowScaling = "none"
    relevant: Relevant = "auto"
    ties: Ties = "expected"
    seed: int = 0
    plugins: tuple[Plugin, ...] = ()

    def declared_method(self) -> Method:
        """Return the method with its parameters, and the settings to choose from."""
        twice = sorted(set(self.choices) & set(self.parameters))
        if twice:
            raise InvalidInputError(f"{twice[0]!r} is both set and among the choices; give one of them")
        features = Features("", scaling=(self.images, self.texts))
        further = plugin_classes(self.plugins)
        method = method_of_class(self.method, features, self.parameters, seed=self.seed, further=further)
        return replace(method, grid=[_grid(method, self.choices)])

    def prepare(self, stage: Stage = silent_stage) -> Prepared:
        """Load the data set and encode it as the method reads it; what cannot work is refused before."""
        method = self.declared_method()
        dataset = find_dataset(self.dataset)
        _check_options(dataset, self.dataset_options)
        with stage(f"loading {self.dataset}"):
            items = dataset.load(**self.dataset_options)
        relevant = self._resolved(items.test)
        if method.needs_labels and items.train.labels is None:
            others = ", ".join(name for name, cls in model_classes().items() if "labels" not in cls.needs)
            raise InvalidInputError(
                f"{method.name} learns from labels, but {items.name} has none; methods without: {others}"
            )
        encoders = choose_encoders(items, self.image_encoder, self.text_encoder)
        label = ", ".join(encoder.identity for encoder in encoders.values()) or "as given"
        task = Task(
            name=f"evaluate-{dataset.name}",
            title=dataset.name,
            dataset=dataset.name,
            features=Features(label, encoders.get("images"), encoders.get("texts")),
            protocol=StandardSplit(HoldOut(seed=self.seed)),
            methods=(method,),
            measures=BY_LABEL if relevant == "label" else BY_INSTANCE,
            relevant=relevant,
            describes_codes=True,
            source=replace(dataset, loader=lambda: items),
        )
        used = {side: one for side, one in encoders.items() if (method.reads, side) in _ENCODED}
        if not used:
            return Prepared(task, method, items, task.fold(task.load(method.reads), 0, method.reads), used)
        total = sum(getattr(part, f"n_{side}") for part in items.parts.values() for side in used)
        with stage(f"encoding {total:,} {' and '.join(used)}") as advance:
            done = 0

            def count(more: int) -> None:
                nonlocal done
                done += more
                advance(done, total)

            return Prepared(task, method, items, task.fold(task.load(method.reads, count), 0, method.reads), used)

    def run(self, stage: Stage = silent_stage, *, curves: bool = False) -> Outcome:
        """Load, encode, choose, fit and measure; ``curves`` adds those that figures show."""
        prepared = self.prepare(stage)
        shown = CURVES if curves else ()
        measured = measure_fold(
            prepared.task,
            prepared.method,
            prepared.fold,
            seed=self.seed,
            ties=self.ties,
            further=shown,
            stage=stage,
        )
        chance = measured.encoded.all_tied().evaluate([AP(), *shown])
        values = {way: measured.result[way].values[AP()] for way in DIRECTIONS}
        return Outcome(
            prepared,
            measured,
            self.ties,
            chance,
            {way: bootstrap_interval(values[way], seed=self.seed) for way in DIRECTIONS},
            by_category(measured.result, chance, prepared.fold.retrieval.queries),
        )

    def _resolved(self, test: Pairs) -> Relevant:
        if self.relevant == "auto":
            return "instance" if test.labels is None else "label"
        if self.relevant == "label" and test.labels is None:
            raise InvalidInputError(f"{self.dataset} has no labels; use relevant=instance")
        return self.relevant


MapStages = dict[str, tuple[FloatArray, FloatArray]]


def map_of_classes(outcome: Outcome, most: int = 500) -> tuple[MapStages, list[str]] | None:
    """Return points of up to ``most`` pairs of each of the two commonest classes before and after learning.

    These are the stages and labels of `diptych.figures.embedding_map`. Before learning both sides are features brought
    to one width by random directions; a method that reads raw items has nothing before. A picture of both classes is
    left out, and a picture's first text stands beside it. None without two classes, or for codes.
    """
    pairs, encoded = outcome.prepared.fold.retrieval.queries, outcome.measured.encoded
    common = sorted(_members(pairs).items(), key=lambda item: -int(item[1].sum()))[:2]
    if len(common) < 2 or outcome.measured.record.n_bits is not None:
        return None
    (first, one), (second, other) = common
    rows = np.sort(np.concatenate([np.flatnonzero(one & ~other)[:most], np.flatnonzero(other & ~one)[:most]]))
    labels = [first if one[row] else second for row in rows]
    if len(set(labels)) < 2 or len(labels) < _MIN_MAPPED:
        return None
    texts = np.unique(pairs.owners, return_index=True)[1][rows]
    stages: MapStages = {}
    if pairs.has_image_features and pairs.has_text_features:
        rng = np.random.default_rng(0)
        sides = np.asarray(pairs.images)[rows], np.asarray(pairs.texts)[texts]
        width = min(side.shape[1] for side in sides)
        images, words = (side @ rng.normal(size=(side.shape[1], width)) for side in sides)
        stages["before learning"] = (images, words)
    stages["after learning"] = (encoded.queries["image_query"][rows], encoded.queries["text_query"][texts])
    return stages, labels


# Which sides are encoded for a method that reads features, or words beside features of pictures.
_ENCODED = {("features", "images"), ("features", "texts"), ("words", "images")}


def choose_encoders(
    splits: DatasetSplits, image_encoder: Encoder | None, text_encoder: Encoder | None
) -> dict[str, Encoder]:
    """Return the encoder of each side that is raw: the one asked for, or the default."""
    sides = {
        "images": (splits.train.has_image_features, image_encoder, ColourEdgeHistograms()),
        "texts": (splits.train.has_text_features, text_encoder, TfidfTopics()),
    }
    chosen: dict[str, Encoder] = {}
    for side, (has_features, wanted, default) in sides.items():
        if not has_features:
            chosen[side] = default if wanted is None else wanted
        elif wanted is not None:
            raise InvalidInputError(
                f"the {side} of {splits.name} come as features, so {type(wanted).__name__} has nothing to encode; "
                f"leave out the {side[:-1]} encoder"
            )
    return chosen


def _check_options(dataset: Dataset, options: Mapping[str, Any]) -> None:
    known, hints = dataset.defaults, get_type_hints(dataset.loader)
    for name, value in options.items():
        if name not in known:
            raise UnknownNameError(f"option of {dataset.name}", name, known)
        wanted = hints.get(name, object)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            kind = getattr(wanted, "__name__", str(wanted))
            raise InvalidInputError(f"option {name!r} of {dataset.name} takes {kind}, got {value!r}")


def _grid(method: Method, choices: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the grid of a method, after trying that every single choice can be set."""
    inner, grid = method.method, {}
    for name, values in choices.items():
        if not isinstance(values, list) or not values:
            raise InvalidInputError(f"the choices of {name!r} must be a list such as [1, 10], got {values!r}")
        if isinstance(method.model, Preprocessed) and name in ("images", "texts"):
            grid[name] = values
        else:
            tried = [with_parameter(inner, name, value) for value in values]
            key = name if inner is method.model else f"model__{name}"
            grid[key] = [model.get_params(deep=True)[name] for model in tried]
    return grid


def readable_parameters(model: CrossModalModel) -> dict[str, Any]:
    """Return all parameters, nested ones included, with methods given by name."""
    values = model.get_params(deep=True)
    return {
        name: method_name(type(values[name])) if isinstance(values[name], CrossModalModel) else values[name]
        for name in sorted(values, key=lambda name: name.split("__"))
    }
