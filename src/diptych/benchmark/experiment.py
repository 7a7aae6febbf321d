"""One method on one data set: fitted on the training part, measured on the test part in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, get_type_hints

from diptych.benchmark.breakdown import AllTied, Category, HashCodeFacts, by_category, hash_code_facts, label_names
from diptych.data import Dataset, DatasetSplits, Pairs, find_dataset
from diptych.encoders import ColourEdgeHistograms, Encoder, TfidfTopics, encode_splits
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.former_names import current_name
from diptych.metrics import (
    AP,
    CMC,
    NDCG,
    BootstrapInterval,
    CMCCurve,
    ConfusionMatrix,
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
from diptych.models.registry import build_model, with_parameter
from diptych.protocols import EncodedRetrieval, HoldOut, Relevant, Tuning, TwoWayEvaluation, evaluate_model, tune
from diptych.protocols.retrieval import ArrayByDirection, encode_sides
from diptych.space import DIRECTIONS, Direction

BY_LABEL: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), Precision(10), Precision(50), NDCG(10, "ideal"))
BY_INSTANCE: tuple[Measure, ...] = (RecallAtK(1), RecallAtK(5), RecallAtK(10), MedianRank(), MeanRank(), AP())
CURVES: tuple[Curve, ...] = (InterpolatedPrecisionRecall(), PrecisionRecallCurve(), CMCCurve())


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
    """Return the full name of a measure, for readers who do not know its short one.

    >>> from diptych.metrics import CMC
    >>> describe_measure(CMC(5))
    'cumulative match'
    """
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
    """Say whether the measure is a rank, where less is better, and not a share."""
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


def _build_grid(model: Preprocessed, choices: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the grid for `tune` of a scaled model, after trying that every single choice can be set."""
    grid: dict[str, list[Any]] = {}
    for name, values in choices.items():
        if not isinstance(values, list) or not values:
            raise InvalidInputError(f"the choices of {name!r} must be a list such as [1, 10], got {values!r}")
        if name in ("images", "texts"):  # The scaling; all other names are parameters of the method.
            grid[name] = values
        else:
            name = current_name(model.model, name)
            tried = [with_parameter(model.model, name, value) for value in values]
            grid[f"model__{name}"] = [method.get_params(deep=True)[name] for method in tried]
    return grid


def readable_parameters(model: CrossModalModel) -> dict[str, Any]:
    """Return all parameters, nested ones included, with methods given by name.

    >>> from diptych.models import CFA, SCM
    >>> readable_parameters(SCM(correlation=CFA()))["correlation"]
    'cfa'
    """
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

    def model(self) -> Preprocessed:
        """Return the unfitted method behind its scaling."""
        inner = build_model(self.method, self.parameters, seed=self.seed)
        return Preprocessed(model=inner, images=self.images, texts=self.texts)

    def run(self, stages: Stages, *, in_detail: bool = False) -> Outcome:
        """Load, encode, fit and measure; ``in_detail`` adds curves and confusion matrices."""
        model = self.model()
        twice = sorted(set(self.choices) & set(self.parameters))
        if twice:
            raise InvalidInputError(f"{twice[0]!r} is both set and among the choices; give one of them")
        grid = _build_grid(model, self.choices)
        raw = load_splits(self.dataset, self.dataset_options, stages)
        relevant = self._resolved(raw.test)
        _check_labels(model.model, raw)
        encoders = choose_encoders(raw, self.image_encoder, self.text_encoder)
        splits = encode(raw, encoders, stages)
        tuning = None
        if grid:
            with stages.run("fit", "choosing parameters on 5 hold-outs of the training part") as advance:
                tuning = tune(model, splits.train, grid, HoldOut(seed=self.seed), progress=advance)
                fitted = tuning.model
        else:
            with stages.run("fit", f"fitting {method_name(type(model.model))}"):
                fitted = model.fit(*splits.train.aligned())
        with stages.run("evaluate", f"asking {splits.test.n_images + splits.test.n_texts:,} queries"):
            curves = CURVES if in_detail else ()
            measures = BY_LABEL if relevant == "label" else BY_INSTANCE
            test = splits.test
            evaluation = evaluate_model(fitted, test, [*measures, *curves], relevant=relevant, ties=self.ties)
            chance = evaluate_model(AllTied().fit(*test.aligned()), test, [AP(), *curves], relevant=relevant)
            return Outcome(
                experiment=self,
                model=fitted,
                splits=splits,
                encoders=encoders,
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
    def scaled(self) -> Preprocessed:
        """The fitted model, as what it is: a method behind its scaling."""
        assert isinstance(self.model, Preprocessed)
        return self.model


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
