"""One method on one data set: fitted on the training part, asked and searched on the test part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from diptych.arrays import AnyArray
from diptych.cli.categories import Category, by_category, label_names
from diptych.cli.chance import AllTied
from diptych.cli.code_facts import CodeFacts, code_facts
from diptych.cli.dataset_loading import choose_encoders, encode, load
from diptych.cli.measures import BY_INSTANCE, BY_LABEL
from diptych.cli.model_building import build_grid
from diptych.cli.stages import Stages
from diptych.data import DatasetSplits, Pairs
from diptych.encoders import Encoder
from diptych.errors import InvalidInputError
from diptych.metrics import (
    AP,
    BootstrapInterval,
    CMCCurve,
    ConfusionMatrix,
    Curve,
    InterpolatedPrecisionRecall,
    Measure,
    PrecisionRecallCurve,
    Ties,
    bootstrap_interval,
)
from diptych.models import CrossModalModel, Preprocessed, method_name, model_classes
from diptych.models.building import build_model
from diptych.models.preprocessed import RowScaling
from diptych.protocols import HoldOut, Relevant, Tuning, TwoWayEvaluation, evaluate_model, tune
from diptych.space import DIRECTIONS, Direction

CURVES: tuple[Curve, ...] = (InterpolatedPrecisionRecall(), PrecisionRecallCurve(), CMCCurve())


@dataclass(frozen=True)
class Experiment:
    """What is asked for."""

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
            raise InvalidInputError(f"{twice[0]!r} is both set by --param and chosen by --tune; give one of them")
        grid = build_grid(model, self.choices)
        raw = load(self.dataset, self.dataset_options, stages)
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
            return self._measured(fitted, splits, encoders, relevant, tuning, stages, CURVES if in_detail else ())

    def _resolved(self, test: Pairs) -> Relevant:
        if self.relevant == "auto":
            return "instance" if test.labels is None else "label"
        if self.relevant == "label" and test.labels is None:
            raise InvalidInputError(f"{self.dataset} has no labels; use --relevant instance")
        return self.relevant

    def _measured(
        self,
        model: CrossModalModel,
        splits: DatasetSplits,
        encoders: Mapping[str, Encoder],
        relevant: Relevant,
        tuning: Tuning | None,
        stages: Stages,
        curves: tuple[Curve, ...],
    ) -> Outcome:
        measures = BY_LABEL if relevant == "label" else BY_INSTANCE
        test = splits.test
        evaluation = evaluate_model(model, test, [*measures, *curves], relevant=relevant, ties=self.ties)
        tied = AllTied().fit(*test.aligned())
        chance = evaluate_model(tied, test, [AP(), *curves], relevant=relevant)
        return Outcome(
            experiment=self,
            model=model,
            splits=splits,
            encoders=encoders,
            relevant=relevant,
            measures=measures,
            evaluation=evaluation,
            chance=chance,
            intervals={way: bootstrap_interval(evaluation[way].values[AP()], seed=self.seed) for way in DIRECTIONS},
            categories=by_category(evaluation, chance, test),
            confusion=_confusion(model, test) if curves else None,
            codes=code_facts(model, test, relevant),
            tuning=tuning,
            seconds=stages.seconds,
        )


@dataclass(frozen=True)
class Outcome:
    """What came out; ``chance`` is the same evaluation of a ranking that prefers nothing.

    ``encoders`` holds those of ``images`` and ``texts`` that were raw.
    """

    experiment: Experiment
    model: CrossModalModel
    splits: DatasetSplits
    encoders: Mapping[str, Encoder]
    relevant: Relevant
    measures: tuple[Measure, ...]
    evaluation: TwoWayEvaluation
    chance: TwoWayEvaluation
    intervals: Mapping[Direction, BootstrapInterval]
    categories: tuple[Category, ...]
    confusion: Mapping[Direction, ConfusionMatrix] | None
    codes: CodeFacts | None
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
    sides: dict[Direction, tuple[AnyArray, AnyArray]] = {
        "image_query": (model.encode_images(test.images), names),
        "text_query": (model.encode_texts(test.texts), names[test.owners]),
    }
    queries, gallery = sides["image_query"], sides["text_query"]
    matrices: dict[Direction, ConfusionMatrix] = {}
    for way in DIRECTIONS:
        matrices[way] = ConfusionMatrix.from_points(
            queries[0], gallery[0], model.space, queries[1], gallery[1], direction=way
        )
        queries, gallery = gallery, queries
    return matrices
