"""Everything an experiment found out, as JSON."""

from __future__ import annotations

import json
from typing import Any

from diptych.arrays import FloatArray
from diptych.benchmark.experiment import CURVES, Outcome, readable_parameters
from diptych.benchmark.report import package_versions, plain_value
from diptych.data import DatasetSplits
from diptych.metrics import AP, Curve, InterpolatedPrecisionRecall
from diptych.models import method_name
from diptych.space import DIRECTIONS

FORMAT_VERSION = 1


def experiment_as_json(outcome: Outcome, *, per_query: bool = False) -> str:
    """Return the document; ``per_query`` adds the values of single queries and the curves of every rank."""
    model = outcome.scaled
    content: dict[str, Any] = {
        "format": "diptych-evaluation",
        "format_version": FORMAT_VERSION,
        "dataset": _dataset(outcome.splits),
        "method": {
            "name": method_name(type(model.model)),
            "class": type(model.model).__name__,
            "parameters": readable_parameters(model.model),
            "scaling": {"images": model.images, "texts": model.texts},
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
        "confusion": _confusion(outcome),
        "codes": None if outcome.codes is None else outcome.codes.as_json(),
        "tuning": _tuning(outcome),
        "seconds": dict(outcome.seconds),
        "versions": package_versions(),
    }
    if per_query:
        content["per_query"] = _per_query(outcome)
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _dataset(splits: DatasetSplits) -> dict[str, Any]:
    sizes = {
        part: {"images": pairs.n_images, "texts": pairs.n_texts, "classes": pairs.n_classes}
        for part, pairs in splits.parts.items()
    }
    return {"name": splits.name, "options": dict(splits.options), "parts": sizes}


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


def _confusion(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.confusion is None:
        return None
    return {
        way: {"classes": matrix.classes.tolist(), "counts": matrix.counts.tolist()}
        for way, matrix in outcome.confusion.items()
    }


def _tuning(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.tuning is None:
        return None
    return {
        "trials": [
            {
                "parameters": {name: plain_value(value) for name, value in trial.parameters.items()},
                "scores": list(trial.scores),
                "seconds": trial.seconds,
            }
            for trial in outcome.tuning.trials
        ],
        "best": outcome.tuning.trials.index(outcome.tuning.best),
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
