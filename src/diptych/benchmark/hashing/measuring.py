"""Fits one method once and measures its codes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict

from diptych.benchmark.hashing.code_lookup import codes_of, look_up
from diptych.benchmark.hashing.code_result import CodeResult
from diptych.benchmark.hashing.hashing_task import HashingTask
from diptych.codes import code_statistics
from diptych.data import DatasetSplits
from diptych.metrics import AP, CMC, Measure
from diptych.models import Preprocessed, method_name
from diptych.models.hashing.hashing_model import HashingModel
from diptych.protocols import Retrieval, evaluate_retrieval
from diptych.space import DIRECTIONS, Direction

MEASURES: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), CMC(50))

_RADIUS = 2


def measure_fold(
    task: HashingTask, splits: DatasetSplits, method: HashingModel, n_bits: int, fold: int
) -> list[CodeResult]:
    """Learn codes of ``n_bits`` in one fold and measure them in every setting of the task."""
    train, asked = task.fold(splits, fold)
    model = task.model(method, n_bits, fold)
    start = time.perf_counter()
    model.fit(*train.aligned())
    seconds = time.perf_counter() - start
    return [_result(model, n_bits, fold, setting, retrieval, seconds) for setting, retrieval in asked.items()]


def _result(
    model: Preprocessed, n_bits: int, fold: int, setting: str, retrieval: Retrieval, fit_seconds: float
) -> CodeResult:
    start = time.perf_counter()
    codes = codes_of(model, retrieval.queries)
    encode_seconds = time.perf_counter() - start
    found = codes if retrieval.gallery is retrieval.queries else codes_of(model, retrieval.gallery)
    evaluation = evaluate_retrieval(model, retrieval, MEASURES)
    lookups = look_up(codes, found, retrieval, n_bits)
    return CodeResult(
        method=method_name(type(model.model)),
        n_bits=n_bits,
        fold=fold,
        setting=setting,
        measures={measure.label: {way: evaluation[way].mean[measure] for way in DIRECTIONS} for measure in MEASURES},
        chance={measure.label: {way: evaluation[way].chance[measure] for way in DIRECTIONS} for measure in MEASURES},
        unified_map=_unified_map(model, retrieval),
        precision_radius_2={way: lookup.precision(min(_RADIUS, n_bits)) for way, lookup in lookups.items()},
        unanswered_radius_2={way: lookup.unanswered(min(_RADIUS, n_bits)) for way, lookup in lookups.items()},
        lookup_recall={way: _listed(lookup.micro_curve().x) for way, lookup in lookups.items()},
        lookup_precision={way: _listed(lookup.micro_curve().y) for way, lookup in lookups.items()},
        statistics={
            "images": asdict(code_statistics(found["image_query"], n_bits)),
            "texts": asdict(code_statistics(found["text_query"], n_bits)),
        },
        fit_seconds=fit_seconds,
        encoded_per_second=(retrieval.queries.n_images + retrieval.queries.n_texts) / encode_seconds,
        model=" ".join(repr(model).split()),
    )


def _unified_map(model: Preprocessed, retrieval: Retrieval) -> dict[Direction, float]:
    unified = evaluate_retrieval(model, retrieval, (AP(),), gallery="unified")
    return {way: unified[way].mean[AP()] for way in DIRECTIONS}


def _listed(values: Iterable[float]) -> list[float]:
    return [round(float(value), 6) for value in values]
