"""Queries with their answers, asked again to be looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Literal

import numpy as np

from diptych.arrays import AnyArray
from diptych.benchmark.papers import declared_tasks
from diptych.benchmark.reporting.results import CHANCE_METHODS, MethodResults, TaskResults
from diptych.benchmark.task import Task
from diptych.data import Pairs
from diptych.encoders.image.picture_decoding import read_picture, thumbnail
from diptych.errors import DiptychError
from diptych.estimators import clone
from diptych.models import CrossModalModel
from diptych.protocols import EncodedRetrieval, Fold, Retrieval, class_list
from diptych.space import DIRECTIONS, Direction, opposite

_FIRST = 5
_QUERIES = 2
_SIDE = 112
_QUALITY = 65
_LONGEST_TEXT = 240
_ROUNDING = 1e-3
_BASELINE = "cca"


@dataclass(frozen=True)
class Shown:
    """One thing to look at: a small JPEG, or a text, its class, and the likeliest classes where a method has them."""

    picture: bytes | None
    text: str
    label: str
    likeliest: str = ""


@dataclass(frozen=True)
class Sample:
    """A query and the first answers of each method, with whether each is of the query's class.

    ``likeliest`` has the query's likeliest classes for every method whose points are probabilities of classes.
    """

    direction: Literal["image_query", "text_query"]
    query: Shown
    answers: dict[str, tuple[tuple[Shown, bool], ...]]
    likeliest: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SampleSheet:
    """The samples of one task, or the reason why there are none."""

    task: str
    samples: tuple[Sample, ...]
    note: str


def sample_sheets(
    tasks: Sequence[TaskResults],
    declarations: Sequence[Task] | None = None,
    seed: int = 0,
    methods: Collection[str] = (),
) -> tuple[SampleSheet, ...]:
    """Ask a few queries of one task of every data set again, and show what the best method and CCA answer.

    The task on unseen classes is preferred. Both methods are fitted once more with the parameters that the first fold
    chose. With ``methods`` these are shown instead, on every task that has results of one. ``declarations`` are the
    tasks to look them up in, by default those of `declared_tasks`. Where the data is not on this machine, or has no
    pictures, the sheet says so and is empty.
    """
    declared = {task.name: task for task in (declared_tasks() if declarations is None else declarations)}
    chosen: dict[str, TaskResults] = {}
    for task in sorted(tasks, key=lambda task: task.setting != "unseen"):
        if task.name in declared and (not methods or any(map(task.method, methods))):
            chosen.setdefault(task.name if methods else task.dataset, task)
    return tuple(_sheet(task, declared[task.name], seed, methods) for task in chosen.values())


def _sheet(task: TaskResults, declared: Task, seed: int, methods: Collection[str]) -> SampleSheet:
    if not declared.data.is_available:
        return SampleSheet(task.title, (), f"The data set {task.dataset} is not on this machine, so nothing is shown.")
    try:
        raw = declared.data.load(**declared.options)
        if raw.test.has_image_features:
            return SampleSheet(task.title, (), f"{task.title} comes as features, without pictures to show.")
        number = task.folds[0]
        shown = declared.protocol.fold(raw, number).retrieval
        fold = declared.fold(declared.load(), number)
        named = [method for method in map(task.method, methods) if method is not None]
        chosen = named or _best_and_baseline(task)
        asked = {method.title: _encoded_again(method, declared, fold, number) for method in chosen}
    except DiptychError as problem:
        return SampleSheet(task.title, (), f"No samples: {problem}")
    learned = fold.training.pairs
    classes = () if learned is None or learned.labels is None else class_list(learned)
    samples = tuple(
        _sample(way, row, shown, asked, classes)
        for way in DIRECTIONS
        for row in _queries(next(iter(asked.values())), way, seed)
    )
    return SampleSheet(
        task.title,
        samples,
        f"Queries of fold {number}, drawn at random, and the first {_FIRST} answers. ✓ and a full frame: of the "
        "query’s class; ✗ and a dashed frame: of another.",
    )


def _best_and_baseline(task: TaskResults) -> list[MethodResults]:
    """Return the best real-valued method that learns, and CCA; the two best where CCA is the best."""
    real = [method for method in task.methods if method.n_bits is None and method.name not in CHANCE_METHODS]
    baseline = [method for method in real[1:] if method.name == _BASELINE]
    return [*real[:1], *(baseline or real[1:2])]


def _encoded_again(method: MethodResults, declared: Task, fold: Fold, number: int) -> EncodedRetrieval:
    entry = declared.method(method.name)
    record = next((record for record in method.records if record.fold == number), method.records[0])
    model: CrossModalModel = clone(entry.model)
    known = model.get_params(deep=True)
    # Most methods stand behind a scaling, inside of which their parameters have longer names.
    names = {name: f"model__{name}" if f"model__{name}" in known else name for name in record.parameters}
    model.set_params(**{names[name]: value for name, value in record.parameters.items()})
    fold.training.fit(model)
    return EncodedRetrieval.of(model, fold.retrieval, relevant=declared.relevant)


def _queries(encoded: EncodedRetrieval, way: Direction, seed: int) -> list[int]:
    """Draw queries of different classes, the same for every method."""
    truth = encoded.query_truth[way]
    drawn: dict[str, int] = {}
    for row in np.random.default_rng(seed).permutation(len(truth)).tolist():
        drawn.setdefault(str(truth[row]), row)
    return list(drawn.values())[:_QUERIES]


def _sample(
    way: Direction, row: int, shown: Retrieval, asked: Mapping[str, EncodedRetrieval], classes: Sequence[str]
) -> Sample:
    other = opposite(way)
    answers, likeliest = {}, {}
    for title, encoded in asked.items():
        right = encoded.gallery_truth[other] == encoded.query_truth[way][row]
        query, points = encoded.queries[way][row], encoded.gallery[other]
        scores = encoded.space.compare(query[None], points, way)[0]
        found = np.argsort(-scores, kind="stable")[:_FIRST].tolist()
        items = (_shown(shown.gallery, other, place, _likeliest(points[place], classes)) for place in found)
        answers[title] = tuple(zip(items, right[found].tolist(), strict=True))
        likeliest[title] = _likeliest(query, classes)
    return Sample(way, _shown(shown.queries, way, row), answers, likeliest)


def _likeliest(point: AnyArray, classes: Sequence[str], most: int = 3) -> str:
    """Return the likeliest classes of a point that is a probability of each training class, else nothing."""
    if len(point) != len(classes) or point.min() < 0 or abs(float(point.sum()) - 1) > _ROUNDING:
        return ""
    return ", ".join(f"{classes[place]} {point[place]:.2f}" for place in np.argsort(-point, kind="stable")[:most])


def _shown(pairs: Pairs, side: Direction, row: int, likeliest: str = "") -> Shown:
    """Return a picture or a text of the pairs; ``side`` is the direction in which it would ask."""
    owner = row if side == "image_query" else int(pairs.owners[row])
    label = "" if pairs.labels is None else pairs.class_name(pairs.labels[owner])
    if side == "text_query":
        return Shown(None, shorten(str(pairs.texts[row]), _LONGEST_TEXT, placeholder=" …"), label, likeliest)
    pixels = read_picture(pairs.images[row], shortest_side=_SIDE)
    return Shown(
        thumbnail(pixels, longest_side=_SIDE, quality=_QUALITY), f"picture of the class {label}", label, likeliest
    )
