"""Fits one ranking method or network once, measures it, and shows its points and its first answers."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.benchmark.studies.zhang import NeuralData, NeuralMethod, NeuralTask
from diptych.benchmark.task import one_line
from diptych.data import Pairs
from diptych.metrics import Precision, PrecisionScope
from diptych.models import CrossModalModel
from diptych.protocols import EncodedRetrieval
from diptych.protocols.retrieval import encode_sides, relevance_labels
from diptych.space import DIRECTIONS, Direction, opposite

ByDirection = dict[Direction, float]


@dataclass(frozen=True)
class NeuralResult:
    """Measures and chance in both directions, keyed by the label of the measure, and precision at each scope.

    ``relevant_share`` is the chance level of precision at any scope.
    """

    method: str
    seed: int
    measures: dict[str, ByDirection]
    chance: dict[str, ByDirection]
    scopes: list[int]
    precision: dict[Direction, list[float]]
    relevant_share: ByDirection
    fit_seconds: float
    encode_seconds: float
    model: str

    def as_json(self) -> dict[str, Any]:
        """Return plain values, from which ``NeuralResult(**values)`` makes it again."""
        return asdict(self)


SCOPES = (10, 20, 50, *range(100, 1001, 100))


def fit_method(
    task: NeuralTask, data: NeuralData, method: NeuralMethod, seed: int, epochs: int | None
) -> CrossModalModel:
    """Return the method, learned from the training part."""
    train, _ = data.parts(method.reads)
    images, texts, labels = train.aligned()
    if labels is None and method.own_classes:
        labels = train.owners
    return method.build(task.images, task.texts, seed=seed, epochs=epochs).fit(images, texts, labels)


def encode_test_part(model: CrossModalModel, pairs: Pairs, *, has_classes: bool) -> EncodedRetrieval:
    """Return the points of queries and gallery, features or items alike, and what makes answers right."""
    points, truth = encode_sides(model, pairs), relevance_labels(pairs, "auto" if has_classes else "instance")
    return EncodedRetrieval(model.space, points, points, truth, truth)


def measure_fit(
    task: NeuralTask, data: NeuralData, method: NeuralMethod, seed: int = 0, epochs: int | None = None
) -> NeuralResult:
    """Learn a method with one seed and measure it on the test part."""
    start = time.perf_counter()
    model = fit_method(task, data, method, seed, epochs)
    learned = time.perf_counter()
    _, test = data.parts(method.reads)
    asked = encode_test_part(model, test, has_classes=task.has_classes)
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
        model=one_line(model),
    )


Points = tuple[FloatArray, FloatArray]

_MOST_CLASSES = 6
_MOST_ITEMS = 300


@dataclass(frozen=True, eq=False)
class Illustration:
    """A method learned once, and the test items as points of its space."""

    method: NeuralMethod
    model: CrossModalModel
    pairs: Pairs
    points: EncodedRetrieval
    features: Pairs

    @classmethod
    def of(
        cls, task: NeuralTask, data: NeuralData, method: NeuralMethod, *, seed: int = 0, epochs: int | None = None
    ) -> Illustration:
        """Learn the method as `run_neural` does and encode the test part."""
        model = fit_method(task, data, method, seed, epochs)
        _, test = data.parts(method.reads)
        return cls(
            method,
            model,
            data.items.test,
            encode_test_part(model, test, has_classes=task.has_classes),
            data.features.test,
        )

    def map_rows(self, seed: int = 0) -> tuple[IntArray, AnyArray]:
        """Return picture rows for a map, those of one class among the six commonest, and their classes by name.

        At most 300 rows are drawn.
        """
        names = np.array([""]) if self.pairs.labels is None else self.pairs.image_classes()
        if self.pairs.is_multi_label:
            names = np.where(np.asarray(self.pairs.labels).sum(axis=1) == 1, names, "")
        known, counts = np.unique(names[names != ""], return_counts=True)
        commonest = known[np.argsort(-counts, kind="stable")[:_MOST_CLASSES]]
        rows = np.flatnonzero(np.isin(names, commonest))
        if len(rows) > _MOST_ITEMS:
            rows = np.sort(np.random.default_rng(seed).permutation(rows)[:_MOST_ITEMS])
        return rows, names[rows]

    def stages(self, rows: IntArray, seed: int = 0) -> dict[str, Points]:
        """Return the points of pictures and of their first texts, before learning and after.

        Before, there are only features: each side is centred and mapped to the same dimensions at random.
        """
        texts = _first_texts(self.pairs)[rows]
        images, words = np.asarray(self.features.images), np.asarray(self.features.texts)
        width = min(images.shape[1], words.shape[1])
        rng = np.random.default_rng(seed)
        before = (_mapped(images, rows, width, rng), _mapped(words, texts, width, rng))
        learned = self.points.queries
        return {
            "before: features, random maps": before,
            f"after: {self.method.name}": (learned["image_query"][rows], learned["text_query"][texts]),
        }

    def answers(self, way: Direction, row: int, k: int = 4) -> tuple[IntArray, AnyArray]:
        """Return the first ``k`` answers to a query, as rows of the other side, and whether each is right."""
        images, texts = self.points.queries["image_query"], self.points.queries["text_query"]
        if way == "image_query":
            scores = self.points.space.compare(images[row : row + 1], texts)[0]
        else:
            scores = self.points.space.compare(images, texts[row : row + 1])[:, 0]
        found = np.argsort(-scores, kind="stable")[:k].astype(np.int64)
        asked, carried = self.points.query_truth[way][row], self.points.gallery_truth[opposite(way)][found]
        right = carried == asked if carried.ndim == 1 else (carried * asked).any(axis=1)
        return found, np.asarray(right)


def _first_texts(pairs: Pairs) -> IntArray:
    _, first = np.unique(pairs.owners, return_index=True)
    return first.astype(np.int64)


def _mapped(features: FloatArray, rows: IntArray, width: int, rng: np.random.Generator) -> FloatArray:
    centred = features - features.mean(axis=0)
    return np.asarray(centred[rows] @ rng.normal(size=(features.shape[1], width)))
