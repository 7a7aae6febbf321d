"""Runs one method on one fold: chooses its parameters, fits it and asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from diptych.arrays import FloatArray
from diptych.benchmark.peak_memory import PeakMemory
from diptych.benchmark.results import Record
from diptych.benchmark.runner import machine_name, package_versions, plain_value
from diptych.benchmark.running.run_catalogue import Catalogue, Unit
from diptych.benchmark.studies.liu import RetrievalTask
from diptych.benchmark.task import Method, one_line
from diptych.codes import code_statistics
from diptych.data import DatasetSplits, Pairs
from diptych.errors import MissingDataError, MissingPackageError
from diptych.estimators import clone
from diptych.metrics import AP, CMC, CMCCurve, CurvePoints, InterpolatedPrecisionRecall, MeanRank, Measure
from diptych.models import CrossModalModel
from diptych.protocols import EncodedRetrieval, Fold, Retrieval, Training, TwoWayEvaluation, tune
from diptych.protocols.tuning import class_list
from diptych.space import DIRECTIONS

_RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_DIGITS = 6
_CMC = CMCCurve()
_FIRST_RANK = MeanRank()
# Exact but for queries with large groups of ties, those of short hash codes; of these two random orders are averaged.
# The exact expectation takes time with the fourth power of a group. The standard error of a level is at most
# 1/(2·√2·√queries), 0.013 for 693; no other number of a record is sampled.
_PRECISION_RECALL = InterpolatedPrecisionRecall(samples=2)
# Threads of linear algebra and the peak of memory belong to the whole process.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Choice:
    """A fitted model, the parameters it was given, and how they did on the hold-outs (None where nothing was tried)."""

    model: CrossModalModel
    parameters: dict[str, Any]
    mean: float | None
    deviation: float | None
    trials: int
    tune_seconds: float
    fit_seconds: float


def choose(entry: Method, training: Training, measure: Measure) -> Choice:
    """Try every setting on the hold-outs, and fit the best on all training pairs.

    Training pairs are all that comes in; a single setting is fitted without a trial.
    """
    from sklearn.model_selection import ParameterGrid

    settings = list(ParameterGrid([{name: list(values) for name, values in part.items()} for part in entry.grid]))
    # Of the processor, like the fit's: units run side by side, and would slow each other's clock.
    start = time.process_time()
    if len(settings) == 1:
        model = clone(entry.model).set_params(**settings[0]).fit(*training.pairs.aligned())
        return Choice(model, dict(settings[0]), None, None, 0, 0.0, time.process_time() - start)
    tuning = tune(entry.model, training.pairs, entry.grid, training.hold_outs, measure=measure)
    spent = time.process_time() - start - tuning.fit_seconds
    best = tuning.best
    trials = len(tuning.trials)
    return Choice(tuning.model, best.parameters, best.mean, best.deviation, trials, spent, tuning.fit_seconds)


@dataclass(frozen=True)
class Failure:
    """What went wrong, in one line; ``missing`` where nothing is wrong but a package or data set is not here."""

    unit: Unit
    message: str
    missing: bool = False

    @classmethod
    def of(cls, unit: Unit, error: BaseException, *, missing: bool = False) -> Failure:
        """Describe an error in one line."""
        text = " ".join(str(error).split()) or "no message"
        return cls(unit, text if missing else f"{type(error).__name__}: {text}", missing)


def run_unit(catalogue: Catalogue, unit: Unit) -> Record | Failure:
    """Choose, fit and ask one method on one fold; whatever goes wrong becomes a `Failure`.

    Linear algebra runs on one thread, so that numbers do not depend on how many units run at once.
    """
    try:
        with _ONE_AT_A_TIME, threadpool_limits(limits=1):
            return measure_unit(catalogue, unit)
    except (MissingPackageError, MissingDataError) as error:
        return Failure.of(unit, error, missing=True)
    except Exception as error:
        return Failure.of(unit, error)


def measure_unit(catalogue: Catalogue, unit: Unit) -> Record:
    """Return the record of one unit; errors come through."""
    task = catalogue.task(unit.task)
    entry = task.method(unit.method)
    fold = _fold(catalogue, unit.task, unit.fold)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with PeakMemory() as memory:
        # All that a method may see goes in here, and nothing else.
        choice = choose(entry, fold.training, task.measures[0])
        begun = time.perf_counter()
        encoded = EncodedRetrieval.of(choice.model, fold.retrieval, relevant=task.relevant)
        encode_seconds = time.perf_counter() - begun
        begun = time.perf_counter()
        result = encoded.evaluate([*task.measures, _FIRST_RANK, _CMC, _PRECISION_RECALL])
        evaluate_seconds = time.perf_counter() - begun
    seconds = {"tune": choice.tune_seconds, "fit": choice.fit_seconds}
    seconds |= {"encode": encode_seconds, "evaluate": evaluate_seconds}
    return Record(
        task=task.name,
        dataset=task.dataset,
        setting=task.protocol.setting,
        features=task.features.label,
        method=entry.key,
        method_title=entry.name,
        fold=unit.fold,
        group=entry.group,
        n_bits=entry.n_bits,
        seed=catalogue.seed,
        train_classes=list(fold.train_classes),
        test_classes=list(fold.test_classes),
        n_train=fold.training.pairs.n_texts,
        **_query_counts(task, fold.retrieval),
        **_measured(task.measures, result),
        confusion=_confusion(task, fold.retrieval, encoded),
        parameters={name.removeprefix("model__"): plain_value(value) for name, value in choice.parameters.items()},
        model=one_line(choice.model),
        validation={"mean": choice.mean, "deviation": choice.deviation, "trials": choice.trials},
        seconds={name: round(spent, 4) for name, spent in seconds.items()},
        peak_memory_bytes=memory.bytes,
        code_statistics=_code_statistics(entry, encoded),
        space=encoded.space.name,
        versions=package_versions(),
        machine=machine_name(),
        started=started,
        fingerprint=task.fingerprint(entry),
    )


@lru_cache(maxsize=2)
def _splits(catalogue: Catalogue, dataset: str, task: str) -> DatasetSplits:
    return catalogue.task(task).load()


@lru_cache(maxsize=2)
def _fold(catalogue: Catalogue, name: str, number: int) -> Fold:
    """Return a fold; units of one fold follow one another, so that the last ones are enough to keep."""
    task = catalogue.task(name)
    return task.fold(_splits(catalogue, task.dataset, name), number)


def measure_key(measure: Measure) -> str:
    """Return the name of a measure in records: ``AP()``, or its label such as ``CMC@1``."""
    return "AP()" if measure == AP() else measure.label


def _query_counts(task: RetrievalTask, retrieval: Retrieval) -> dict[str, Any]:
    queries, gallery = retrieval.queries, retrieval.gallery
    counts: dict[str, Any] = {
        "n_queries": {"image_query": queries.n_images, "text_query": queries.n_texts},
        "n_gallery": {"image_query": gallery.n_texts, "text_query": gallery.n_images},
    }
    if _has_classes(task, queries):
        names = class_list(queries)
        positions = {name: number for number, name in enumerate(names)}
        numbers = [positions[name] for name in queries.image_classes().tolist()]
        counts["classes"] = list(names)
        counts["query_classes"] = {"image_query": numbers, "text_query": [numbers[row] for row in queries.owners]}
    return counts


def _has_classes(task: RetrievalTask, pairs: Pairs) -> bool:
    return task.relevant != "instance" and pairs.labels is not None


def _measured(measures: Sequence[Measure], result: TwoWayEvaluation) -> dict[str, Any]:
    per_query = [measure for measure in measures if measure in (AP(), CMC(1))]
    return {
        "measures": {measure_key(one): {way: float(result[way].mean[one]) for way in DIRECTIONS} for one in measures},
        "chance": {measure_key(one): {way: float(result[way].chance[one]) for way in DIRECTIONS} for one in measures},
        "curves": {
            "cmc": {way: _points(_at_ranks(result[way][_CMC])) for way in DIRECTIONS},
            "precision_recall": {way: _points(result[way][_PRECISION_RECALL]) for way in DIRECTIONS},
        },
        "per_query": {
            **{measure_key(one): {way: _rounded(result[way].values[one]) for way in DIRECTIONS} for one in per_query},
            "first_rank": {way: _rounded(result[way].values[_FIRST_RANK]) for way in DIRECTIONS},
        },
    }


def _at_ranks(curve: CurvePoints) -> CurvePoints:
    ranks = [rank for rank in _RANKS if rank <= len(curve.x)]
    rows = np.array([rank - 1 for rank in ranks])
    return CurvePoints(curve.x[rows], curve.y[rows], curve.x_label, curve.y_label)


def _points(curve: CurvePoints) -> dict[str, list[float | None]]:
    return {"x": _rounded(curve.x), "y": _rounded(curve.y)}


def _rounded(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), _DIGITS) for value in values]


def _confusion(task: RetrievalTask, retrieval: Retrieval, encoded: EncodedRetrieval) -> dict[str, Any] | None:
    pairs = retrieval.queries
    if not _has_classes(task, pairs) or pairs.is_multi_label:
        return None
    matrices = {way: encoded.confusion(way) for way in DIRECTIONS}
    return {
        way: {"classes": [pairs.class_name(value) for value in matrix.classes], "counts": matrix.counts.tolist()}
        for way, matrix in matrices.items()
    }


def _code_statistics(entry: Method, encoded: EncodedRetrieval) -> dict[str, Any] | None:
    if entry.n_bits is None:
        return None
    sides = {"image": encoded.gallery["image_query"], "text": encoded.gallery["text_query"]}
    return {side: asdict(code_statistics(codes, entry.n_bits)) for side, codes in sides.items()}
