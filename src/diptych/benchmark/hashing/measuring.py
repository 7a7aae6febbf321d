"""Fits one method once and measures its codes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.benchmark.hashing.code_result import CodeResult
from diptych.benchmark.hashing.hashing_task import HashingTask
from diptych.codes import code_statistics
from diptych.data import DatasetSplits, Pairs
from diptych.metrics import AP, CMC, HammingLookup, Measure, SameLabel, SharedLabel
from diptych.models import CrossModalModel, Preprocessed, method_name
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
    gallery = retrieval.gallery
    start = time.perf_counter()
    codes = _codes(model, retrieval.queries)
    encode_seconds = time.perf_counter() - start
    found = codes if gallery is retrieval.queries else _codes(model, gallery)
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
            "images": plain_statistics(found["image_query"], n_bits),
            "texts": plain_statistics(found["text_query"], n_bits),
        },
        fit_seconds=fit_seconds,
        encoded_per_second=(retrieval.queries.n_images + retrieval.queries.n_texts) / encode_seconds,
        model=" ".join(repr(model).split()),
    )


def look_up(
    queries: dict[Direction, AnyArray], gallery: dict[Direction, AnyArray], retrieval: Retrieval, n_bits: int
) -> dict[Direction, HammingLookup]:
    """Return what lies within each radius of the queries of both directions."""
    asked, carried = truth(retrieval.queries), truth(retrieval.gallery)
    lookups: dict[Direction, HammingLookup] = {}
    for way, other in zip(DIRECTIONS, reversed(DIRECTIONS), strict=True):
        kind = SameLabel if asked[way].ndim == 1 else SharedLabel
        lookups[way] = HammingLookup.from_codes(
            queries[way], gallery[other], kind(asked[way], carried[other]), n_bits=n_bits
        )
    return lookups


def truth(pairs: Pairs) -> dict[Direction, AnyArray]:
    """Return for each side what must agree for two items to be relevant: labels, or else the picture."""
    if pairs.labels is None or pairs.text_labels is None:
        return {"image_query": pairs.ids, "text_query": pairs.ids[pairs.owners]}
    return {"image_query": pairs.labels, "text_query": pairs.text_labels}


def plain_statistics(codes: AnyArray, n_bits: int) -> dict[str, Any]:
    """Return the statistics of codes as plain values; arrays, which have a value per bit, become lists."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in asdict(code_statistics(codes, n_bits)).items()
    }


def _codes(model: CrossModalModel, pairs: Pairs) -> dict[Direction, AnyArray]:
    return {"image_query": model.encode_images(pairs.images), "text_query": model.encode_texts(pairs.texts)}


def _unified_map(model: Preprocessed, retrieval: Retrieval) -> dict[Direction, float]:
    unified = evaluate_retrieval(model, retrieval, (AP(),), gallery="unified")
    return {way: unified[way].mean[AP()] for way in DIRECTIONS}


def _listed(values: Iterable[float]) -> list[float]:
    return [round(float(value), 6) for value in values]
