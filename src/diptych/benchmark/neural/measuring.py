"""Fits one method once and measures it."""

from __future__ import annotations

import time

from diptych.benchmark.neural.neural_data import NeuralData
from diptych.benchmark.neural.neural_method import NeuralMethod
from diptych.benchmark.neural.neural_result import NeuralResult
from diptych.benchmark.neural.neural_task import NeuralTask
from diptych.data import Pairs
from diptych.metrics import Precision, PrecisionScope
from diptych.models import CrossModalModel
from diptych.protocols import EncodedRetrieval
from diptych.protocols.encoded_retrieval import Sides
from diptych.space import DIRECTIONS

SCOPES = (10, 20, 50, *range(100, 1001, 100))


def fitted(task: NeuralTask, data: NeuralData, method: NeuralMethod, seed: int, epochs: int | None) -> CrossModalModel:
    """Return the method, learned from the training part."""
    train, _ = data.parts(method.reads)
    return method.build(task.images, task.texts, seed=seed, epochs=epochs).fit(*train.aligned())


def encoded(model: CrossModalModel, pairs: Pairs, *, has_classes: bool) -> EncodedRetrieval:
    """Return the points of queries and gallery, features or items alike, and what makes answers right."""
    points: Sides = {"image_query": model.encode_images(pairs.images), "text_query": model.encode_texts(pairs.texts)}
    truth: Sides = {"image_query": pairs.ids, "text_query": pairs.ids[pairs.owners]}
    if has_classes and pairs.labels is not None and pairs.text_labels is not None:
        truth = {"image_query": pairs.labels, "text_query": pairs.text_labels}
    return EncodedRetrieval(model.space, points, points, truth, truth)


def measure_once(
    task: NeuralTask, data: NeuralData, method: NeuralMethod, seed: int = 0, epochs: int | None = None
) -> NeuralResult:
    """Learn a method with one seed and measure it on the test part."""
    start = time.perf_counter()
    model = fitted(task, data, method, seed, epochs)
    learned = time.perf_counter()
    _, test = data.parts(method.reads)
    asked = encoded(model, test, has_classes=task.has_classes)
    ready = time.perf_counter()
    scopes = tuple(scope for scope in SCOPES if scope <= min(test.n_images, test.n_texts)) or (1,)
    curve, first = PrecisionScope(scopes), Precision(1)
    evaluation = asked.evaluate([*task.measures, first, curve])
    return NeuralResult(
        method=method.key,
        seed=seed,
        measures={m.label: {way: evaluation[way].mean[m] for way in DIRECTIONS} for m in task.measures},
        chance={m.label: {way: evaluation[way].chance[m] for way in DIRECTIONS} for m in task.measures},
        scopes=list(scopes),
        precision={way: [float(value) for value in evaluation[way].curves[curve].y] for way in DIRECTIONS},
        relevant_share={way: evaluation[way].chance[first] for way in DIRECTIONS},
        fit_seconds=learned - start,
        encode_seconds=ready - learned,
        model=" ".join(repr(model).split()),
    )
