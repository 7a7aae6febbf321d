"""One method on one data set: fitted on the training part, measured on the test part both ways; all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol, get_type_hints

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.benchmark.methods import MNIL_ON_FEATURES, CaptionClicks
from diptych.benchmark.runner import look_up, package_versions, plain_value
from diptych.benchmark.task import Features
from diptych.codes import CodeStatistics, code_statistics
from diptych.data import Dataset, DatasetSplits, Pairs, find_dataset
from diptych.encoders import ColourEdgeHistograms, Encoder, TfidfTopics, encode_splits
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import (
    AP,
    CMC,
    NDCG,
    BootstrapInterval,
    CMCCurve,
    ConfusionMatrix,
    Curve,
    HammingLookup,
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
from diptych.models.base import Need
from diptych.models.clicks.click_model import ClickModel
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.item_model import ItemModel
from diptych.models.labels import Targets
from diptych.models.preprocessed import RowScaling
from diptych.models.registry import build_model, find_model, with_parameter
from diptych.protocols import (
    EncodedRetrieval,
    HoldOut,
    Relevant,
    Retrieval,
    Tuning,
    TwoWayEvaluation,
    evaluate_model,
    tune,
)
from diptych.protocols.retrieval import ArrayByDirection, encode_sides
from diptych.space import DIRECTIONS, Direction, Space


@dataclass(frozen=True)
class Category:
    """MAP of the queries of one category; None where no query of it has a relevant item."""

    name: str
    n_images: int
    n_texts: int
    value: dict[Direction, float | None]
    chance: dict[Direction, float | None]


def by_category(evaluation: TwoWayEvaluation, chance: TwoWayEvaluation, pairs: Pairs) -> tuple[Category, ...]:
    """Return one row for each category that occurs in ``pairs``; a query with several labels counts in each."""
    return tuple(
        Category(
            name=name,
            n_images=int(images.sum()),
            n_texts=int(images[pairs.owners].sum()),
            value=_both_ways(evaluation, images, pairs),
            chance=_both_ways(chance, images, pairs),
        )
        for name, images in _members(pairs).items()
    )


def label_names(pairs: Pairs) -> AnyArray | None:
    """Return the name of each image's class, or None when there is not exactly one class per image."""
    return None if pairs.labels is None or pairs.is_multi_label else pairs.image_classes()


def _members(pairs: Pairs) -> dict[str, BoolArray]:
    """Return, in the data set's own order, which images belong to each category that occurs."""
    names = label_names(pairs)
    if names is None:
        if pairs.labels is None:
            return {}
        members = {name: pairs.labels[:, column] == 1 for column, name in enumerate(pairs.class_names)}
    else:
        order = pairs.class_names or tuple(np.unique(names).tolist())
        members = {name: names == name for name in order}
    return {name: images for name, images in members.items() if images.any()}


def _both_ways(evaluation: TwoWayEvaluation, images: BoolArray, pairs: Pairs) -> dict[Direction, float | None]:
    asked = {"image_query": images, "text_query": images[pairs.owners]}
    return {way: _mean(evaluation[way].values[AP()][asked[way]]) for way in DIRECTIONS}


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


class AllTied(CrossModalModel):
    """Gives every pair the same score.

    Ties are resolved by expectation over all orders, so this scores exactly what a random ranking does: the chance
    level of every curve and of every category.
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "To draw chance levels."

    @property
    def space(self) -> Space:
        """Inner product."""
        return Space("dot")

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        """Learn nothing."""

    def _encode_images(self, images: FloatArray) -> FloatArray:
        return np.zeros((len(images), 1))

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        return np.zeros((len(texts), 1))


@dataclass(frozen=True)
class HashCodeFacts:
    """Statistics of the codes of both sides of the test part, and what lies within each radius of a query."""

    images: CodeStatistics
    texts: CodeStatistics
    lookups: Mapping[Direction, HammingLookup]

    @property
    def radius(self) -> int:
        """2, as in most of the literature, or all bits where there are fewer."""
        return min(2, self.images.n_bits)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "statistics": {"images": asdict(self.images), "texts": asdict(self.texts)},
            "lookup": {way: self._lookup(way) for way in DIRECTIONS},
        }

    def _lookup(self, way: Direction) -> dict[str, Any]:
        lookup = self.lookups[way]
        micro, mean = lookup.micro_curve(), lookup.mean_curve()
        return {
            "radius": self.radius,
            "precision, nothing found is zero": lookup.precision(self.radius),
            "queries that find nothing": lookup.unanswered(self.radius),
            "all queries together": {"recall": micro.x.tolist(), "precision": micro.y.tolist()},
            "mean of queries": {"recall": mean.x.tolist(), "precision": mean.y.tolist()},
        }


def hash_code_facts(model: CrossModalModel, test: Pairs, relevant: Relevant) -> HashCodeFacts | None:
    """Return the facts about the codes of a hashing method, behind its scaling or not; None for other methods."""
    method = model.model if isinstance(model, Preprocessed) else model
    if not isinstance(method, HashingModel):
        return None
    encoded = EncodedRetrieval.of(model, Retrieval(test, test), relevant=relevant)
    return HashCodeFacts(
        code_statistics(encoded.queries["image_query"], method.n_bits),
        code_statistics(encoded.queries["text_query"], method.n_bits),
        look_up(encoded, method.n_bits),
    )


BY_LABEL: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), Precision(10), Precision(50), NDCG(10, "ideal"))
BY_INSTANCE: tuple[Measure, ...] = (RecallAtK(1), RecallAtK(5), RecallAtK(10), MedianRank(), MeanRank(), AP())
CURVES: tuple[Curve, ...] = (InterpolatedPrecisionRecall(), PrecisionRecallCurve(), CMCCurve())
FORMAT_VERSION = 1


class Stages(Protocol):
    """Where a run tells how far it is, and what it took."""

    @property
    def seconds(self) -> Mapping[str, float]:
        """How long each stage took that has ended."""
        ...

    def run(self, name: str, description: str) -> AbstractContextManager[Callable[[int, int], None]]:
        """Time what happens inside under ``name``; calling what it gives with (done, total) tells how far it is."""
        ...


def describe_measure(measure: Measure) -> str:
    """Return the full name of a measure, for readers who do not know its short one."""
    names: dict[type[Measure], str] = {
        AP: "mean average precision",
        CMC: "cumulative match",
        RecallAtK: "recall, any hit",
        Precision: "precision",
        NDCG: "normalised gain",
        MedianRank: "of the first hit",
        MeanRank: "of the first hit",
    }
    return names[type(measure)]


def is_rank(measure: Measure) -> bool:
    """Return True if the measure is a rank, where less is better, and not a share."""
    return isinstance(measure, MedianRank | MeanRank)


def load_splits(name: str, options: Mapping[str, Any], stages: Stages) -> DatasetSplits:
    """Load the data set as it is, after a check of the options."""
    dataset = find_dataset(name)
    _check_options(dataset, options)
    with stages.run("load", f"loading {name}"):
        return dataset.load(**options)


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


def encode(splits: DatasetSplits, encoders: Mapping[str, Encoder], stages: Stages) -> DatasetSplits:
    """Turn whichever side is raw into features; features pass through."""
    if not encoders:
        return splits
    n_images, n_texts = (sum(getattr(part, side) for part in splits.parts.values()) for side in ("n_images", "n_texts"))
    total = ("images" in encoders) * n_images + ("texts" in encoders) * n_texts
    with stages.run("encode", f"encoding {n_images:,} pictures and {n_texts:,} texts") as advance:
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            advance(done, total)

        return encode_splits(splits, encoders.get("images"), encoders.get("texts"), progress=count)


def _check_options(dataset: Dataset, options: Mapping[str, Any]) -> None:
    known, hints = dataset.defaults, get_type_hints(dataset.loader)
    for name, value in options.items():
        if name not in known:
            raise UnknownNameError(f"option of {dataset.name}", name, known)
        wanted = hints.get(name, object)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            kind = getattr(wanted, "__name__", str(wanted))
            raise InvalidInputError(f"option {name!r} of {dataset.name} takes {kind}, got {value!r}")


def inner_method(model: CrossModalModel) -> CrossModalModel:
    """Return a method without the scaling in front of it, or the click model that learns from captions."""
    return model.model if isinstance(model, Preprocessed | CaptionClicks) else model


def _as_read(
    model: CrossModalModel, raw: DatasetSplits, encoders: Mapping[str, Encoder], stages: Stages
) -> DatasetSplits:
    """Return the data as the method reads them: features, strings beside features of pictures, or raw items."""
    if model.inputs == "features":
        return encode(raw, encoders, stages)
    if raw.train.has_text_features:
        name = method_name(type(inner_method(model)))
        raise InvalidInputError(f"{name} reads words, but {raw.name} has features of texts; choose another data set")
    if isinstance(model, ItemModel) and model.takes_pictures:
        return raw
    with stages.run("encode", "encoding pictures"):
        return Features("", encoders.get("images"), encoders.get("texts")).of_pictures(raw)


def _is_encoded(pairs: Pairs, side: str) -> bool:
    return pairs.has_image_features if side == "images" else pairs.has_text_features


def _build_grid(model: CrossModalModel, choices: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the grid for `tune` of a scaled model, after trying that every single choice can be set."""
    grid: dict[str, list[Any]] = {}
    if choices and not isinstance(model, Preprocessed):
        name = method_name(type(inner_method(model)))
        raise InvalidInputError(f"{name} reads words and is not tuned here; set its parameters instead")
    for name, values in choices.items():
        if not isinstance(values, list) or not values:
            raise InvalidInputError(f"the choices of {name!r} must be a list such as [1, 10], got {values!r}")
        if name in ("images", "texts"):  # The scaling; all other names are parameters of the method.
            grid[name] = values
        else:
            tried = [with_parameter(inner_method(model), name, value) for value in values]
            grid[f"model__{name}"] = [method.get_params(deep=True)[name] for method in tried]
    return grid


def readable_parameters(model: CrossModalModel) -> dict[str, Any]:
    """Return all parameters, nested ones included, with methods given by name."""
    values = model.get_params(deep=True)
    return {
        name: method_name(type(values[name])) if isinstance(values[name], CrossModalModel) else values[name]
        for name in sorted(values, key=lambda name: name.split("__"))
    }


@dataclass(frozen=True)
class Experiment:
    """Settings of one evaluation."""

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

    def model(self) -> CrossModalModel:
        """Return the unfitted method: behind its scaling, or from a click model one that learns from captions."""
        cls = find_model(self.method, among=("features", "items", "clicks"))
        given = self.parameters
        if cls.inputs == "items" and "image_tower" not in given:
            given = {**MNIL_ON_FEATURES, **given}
        inner = build_model(self.method, given, seed=self.seed, among=("features", "items", "clicks"))
        if isinstance(inner, ClickModel):
            return CaptionClicks(model=inner)
        return Preprocessed(model=inner, images=self.images, texts=self.texts) if inner.inputs == "features" else inner

    def run(self, stages: Stages, *, in_detail: bool = False) -> Outcome:
        """Load, encode, fit and measure; ``in_detail`` adds curves and confusion matrices."""
        model = self.model()
        twice = sorted(set(self.choices) & set(self.parameters))
        if twice:
            raise InvalidInputError(f"{twice[0]!r} is both set and among the choices; give one of them")
        grid = _build_grid(model, self.choices)
        raw = load_splits(self.dataset, self.dataset_options, stages)
        relevant = self._resolved(raw.test)
        _check_labels(inner_method(model), raw)
        encoders = choose_encoders(raw, self.image_encoder, self.text_encoder)
        splits = _as_read(model, raw, encoders, stages)
        tuning = None
        if grid:
            with stages.run("fit", "choosing parameters on 5 hold-outs of the training part") as advance:
                tuning = tune(model, splits.train, grid, HoldOut(seed=self.seed), progress=advance)
                fitted = tuning.model
        else:
            with stages.run("fit", f"fitting {method_name(type(inner_method(model)))}"):
                fitted = model.fit(*splits.train.aligned())
        with stages.run("evaluate", f"asking {splits.test.n_images + splits.test.n_texts:,} queries"):
            curves = CURVES if in_detail else ()
            measures = BY_LABEL if relevant == "label" else BY_INSTANCE
            test = splits.test
            evaluation = evaluate_model(fitted, test, [*measures, *curves], relevant=relevant, ties=self.ties)
            blank = test.with_features(np.zeros((test.n_images, 1)), np.zeros((test.n_texts, 1)))
            chance = evaluate_model(AllTied().fit(*blank.aligned()), blank, [AP(), *curves], relevant=relevant)
            return Outcome(
                experiment=self,
                model=fitted.model_ if isinstance(fitted, CaptionClicks) else fitted,
                splits=splits,
                encoders={side: each for side, each in encoders.items() if _is_encoded(splits.train, side)},
                relevant=relevant,
                measures=measures,
                evaluation=evaluation,
                chance=chance,
                intervals={way: bootstrap_interval(evaluation[way].values[AP()], seed=self.seed) for way in DIRECTIONS},
                categories=by_category(evaluation, chance, test),
                confusion=_confusion(fitted, test) if curves else None,
                codes=hash_code_facts(fitted, test, relevant),
                tuning=tuning,
                seconds=stages.seconds,
            )

    def _resolved(self, test: Pairs) -> Relevant:
        if self.relevant == "auto":
            return "instance" if test.labels is None else "label"
        if self.relevant == "label" and test.labels is None:
            raise InvalidInputError(f"{self.dataset} has no labels; use relevant=instance")
        return self.relevant


@dataclass(frozen=True)
class Outcome:
    """What came out; ``chance`` is the same evaluation of a ranking that prefers nothing."""

    experiment: Experiment
    model: CrossModalModel
    splits: DatasetSplits
    encoders: Mapping[str, Encoder]  # Of ``images`` and ``texts``, where these were raw.
    relevant: Relevant
    measures: tuple[Measure, ...]
    evaluation: TwoWayEvaluation
    chance: TwoWayEvaluation
    intervals: Mapping[Direction, BootstrapInterval]
    categories: tuple[Category, ...]
    confusion: Mapping[Direction, ConfusionMatrix] | None
    codes: HashCodeFacts | None
    tuning: Tuning | None
    seconds: Mapping[str, float]

    @property
    def method(self) -> CrossModalModel:
        """The fitted method without its scaling."""
        return inner_method(self.model)

    @property
    def scaling(self) -> dict[str, str]:
        """How the rows of each side are scaled; empty for a method that reads raw items."""
        model = self.model
        return {"images": model.images, "texts": model.texts} if isinstance(model, Preprocessed) else {}


def _check_labels(method: CrossModalModel, splits: DatasetSplits) -> None:
    if "labels" in method.needs and splits.train.labels is None:
        others = ", ".join(name for name, cls in model_classes().items() if "labels" not in cls.needs)
        raise InvalidInputError(
            f"{method_name(type(method))} learns from labels, but {splits.name} has none; methods without: {others}"
        )


def _confusion(model: CrossModalModel, test: Pairs) -> dict[Direction, ConfusionMatrix] | None:
    """Return the confusion matrix of each direction, or None when an image has no or several classes."""
    names = label_names(test)
    if names is None:
        return None
    points = encode_sides(model, test)
    truth: ArrayByDirection = {"image_query": names, "text_query": names[test.owners]}
    encoded = EncodedRetrieval(model.space, points, points, truth, truth)
    return {way: encoded.confusion(way) for way in DIRECTIONS}


def experiment_as_json(outcome: Outcome, *, per_query: bool = False) -> str:
    """Return the document; ``per_query`` adds the values of single queries and the curves of every rank."""
    model = outcome.method
    sizes = {
        part: {"images": pairs.n_images, "texts": pairs.n_texts, "classes": pairs.n_classes}
        for part, pairs in outcome.splits.parts.items()
    }
    content: dict[str, Any] = {
        "format": "diptych-evaluation",
        "format_version": FORMAT_VERSION,
        "dataset": {"name": outcome.splits.name, "options": dict(outcome.splits.options), "parts": sizes},
        "method": {
            "name": method_name(type(model)),
            "class": type(model).__name__,
            "parameters": readable_parameters(model),
            "scaling": outcome.scaling,
            "space": model.space.name,
        },
        "encoders": {side: encoder.identity for side, encoder in outcome.encoders.items()},
        "relevant": outcome.relevant,
        "ties": outcome.experiment.ties,
        "seed": outcome.experiment.seed,
        "queries": {way: outcome.evaluation[way].n_queries for way in DIRECTIONS},
        "queries_without_relevant": {way: outcome.evaluation[way].n_without_relevant for way in DIRECTIONS},
        "measures": _measures(outcome),
        "categories": _categories(outcome),
        "curves": _curves(outcome, CURVES if per_query else (InterpolatedPrecisionRecall(),)),
        "confusion": None if outcome.confusion is None else _confusion_rows(outcome.confusion),
        "codes": None if outcome.codes is None else outcome.codes.as_json(),
        "tuning": None if outcome.tuning is None else _tuning(outcome.tuning),
        "seconds": dict(outcome.seconds),
        "versions": package_versions(),
    }
    if per_query:
        content["per_query"] = _per_query(outcome)
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _measures(outcome: Outcome) -> list[dict[str, Any]]:
    evaluation = outcome.evaluation
    rows = []
    for measure in outcome.measures:
        row: dict[str, Any] = {"label": measure.label, "measure": repr(measure)}
        for way in DIRECTIONS:
            row[way] = {"value": evaluation[way].mean[measure], "chance": evaluation[way].chance[measure]}
            if measure == AP():
                interval = outcome.intervals[way]
                row[way]["interval"] = {"level": interval.level, "low": interval.low, "high": interval.high}
        rows.append({**row, "average": evaluation.average(measure), "chance": evaluation.chance(measure)})
    return rows


def _categories(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {
            "name": category.name,
            "images": category.n_images,
            "texts": category.n_texts,
            **{way: {"map": category.value[way], "chance": category.chance[way]} for way in DIRECTIONS},
        }
        for category in outcome.categories
    ]


def _curves(outcome: Outcome, curves: tuple[Curve, ...]) -> list[dict[str, Any]]:
    listed = []
    for curve in curves:
        row: dict[str, Any] = {"label": curve.label, "curve": repr(curve)}
        for way in DIRECTIONS:
            points, chance = outcome.evaluation[way].curves[curve], outcome.chance[way].curves[curve]
            row[way] = {
                points.x_label: points.x.tolist(),
                points.y_label: points.y.tolist(),
                "chance": chance.y.tolist(),
            }
        listed.append(row)
    return listed


def _confusion_rows(confusion: Mapping[Direction, ConfusionMatrix]) -> dict[str, Any]:
    return {
        way: {"classes": matrix.classes.tolist(), "counts": matrix.counts.tolist()} for way, matrix in confusion.items()
    }


def _tuning(tuning: Tuning) -> dict[str, Any]:
    return {
        "trials": [
            {
                "parameters": {name: plain_value(value) for name, value in trial.parameters.items()},
                "scores": list(trial.scores),
                "seconds": trial.seconds,
            }
            for trial in tuning.trials
        ],
        "best": tuning.trials.index(tuning.best),
    }


def _per_query(outcome: Outcome) -> dict[str, Any]:
    test = outcome.splits.test
    ids = {"image_query": test.ids, "text_query": test.text_ids}
    return {
        way: {
            "ids": ids[way].tolist(),
            "values": {measure.label: _values(outcome.evaluation[way].values[measure]) for measure in outcome.measures},
        }
        for way in DIRECTIONS
    }


def _values(values: FloatArray) -> list[float | None]:
    """Return plain numbers; a skipped query, NaN in the array, is null in JSON."""
    return [None if value != value else value for value in values.tolist()]
