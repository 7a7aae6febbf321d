"""The tasks and methods of one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np

from diptych.benchmark.running.features import Features
from diptych.benchmark.running.methods import all_methods, plugin_methods
from diptych.benchmark.running.own_data import OwnData
from diptych.benchmark.running.plugin import Plugin
from diptych.benchmark.running.retrieval_task import RetrievalTask
from diptych.benchmark.running.tasks import retrieval_tasks
from diptych.benchmark.running.unit import Unit
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.protocols import (
    Extendable,
    HoldOut,
    RandomDraws,
    RetrievalProtocol,
    SeenClasses,
    StandardSplit,
    UnseenClasses,
)
from diptych.protocols.class_list import class_list

_MOST_FEATURES = (128, 64)
_OWN_FOLDS = 5
_KERNEL_RANK = 200
_FEWEST_SEEN = 4
# Half of the classes are learned from, and two of those must be left when two are held out.
_FEWEST_UNSEEN = 7


@dataclass(frozen=True)
class Catalogue:
    """What decides the tasks of a run, in plain values that travel to every worker: plugins, own data, folds, seed.

    ``folds`` replaces the number of class folds or draws, ``seed`` what they are drawn with.

    >>> from diptych.benchmark.running import Catalogue
    >>> catalogue = Catalogue(folds=2)
    >>> units = catalogue.units(["extendable-scenes-*"], ["c*ca"])
    >>> len(units), str(units[0]), units[-1]
    (8, 'extendable-scenes-seen, cca, fold 0', Unit(task='extendable-scenes-unseen', fold=1, method='cluster-cca'))
    """

    plugins: tuple[Plugin, ...] = ()
    data: OwnData | None = None
    folds: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.folds is not None and self.folds < 1:
            raise InvalidInputError(f"folds must be at least 1, got {self.folds}")

    def tasks(self) -> dict[str, RetrievalTask]:
        """Return the tasks by name; with own data, only those of that data."""
        return _tasks(self)

    def task(self, name: str) -> RetrievalTask:
        """Return one task."""
        tasks = self.tasks()
        if name not in tasks:
            raise UnknownNameError("task", name, tasks)
        return tasks[name]

    def units(self, tasks: Sequence[str] = ("*",), methods: Sequence[str] = ("*",)) -> list[Unit]:
        """Return the units whose task and method match a pattern, folds of one task together.

        A pattern that matches nothing is an error.
        """
        known = self.tasks()
        chosen = _matching("task", known, tasks)
        keys = dict.fromkeys(entry.key for name in chosen for entry in known[name].methods)
        wanted = set(_matching("method", keys, methods))
        return [
            Unit(name, fold, entry.key)
            for name in chosen
            for fold in range(known[name].protocol.n_folds)
            for entry in known[name].methods
            if entry.key in wanted
        ]


def _matching(kind: str, known: Iterable[str], patterns: Sequence[str]) -> list[str]:
    names = list(known)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UnknownNameError(kind, pattern, names)
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


@lru_cache(maxsize=4)
def _tasks(catalogue: Catalogue) -> dict[str, RetrievalTask]:
    tasks = retrieval_tasks() if catalogue.data is None else _own_tasks(catalogue.data)
    changed = (replace(task, protocol=_changed(task.protocol, catalogue)) for task in tasks)
    return {task.name: _with_plugins(task, catalogue.plugins) for task in changed}


def _changed(protocol: RetrievalProtocol, catalogue: Catalogue) -> RetrievalProtocol:
    folds, seed = catalogue.folds or protocol.n_folds, catalogue.seed
    if isinstance(protocol, SeenClasses):
        return replace(protocol, folds=Extendable(folds, seed), hold_outs=replace(protocol.hold_outs, seed=seed))
    if isinstance(protocol, UnseenClasses):
        return replace(protocol, folds=Extendable(folds, seed), hold_outs=replace(protocol.hold_outs, seed=seed))
    if isinstance(protocol, RandomDraws):
        hold_outs = replace(protocol.hold_outs, seed=seed)
        return replace(protocol, draws=folds, seed=seed, hold_outs=hold_outs)
    if isinstance(protocol, StandardSplit):
        return replace(protocol, hold_outs=replace(protocol.hold_outs, seed=seed))
    return protocol


def _with_plugins(task: RetrievalTask, plugins: tuple[Plugin, ...]) -> RetrievalTask:
    if not plugins:
        return task
    own = plugin_methods(task.features, plugins)
    if task.relevant == "instance":
        own = tuple(entry for entry in own if "labels" not in entry.method.needs)
    replaced = {entry.key for entry in own}
    return task.with_methods((*own, *(entry for entry in task.methods if entry.key not in replaced)))


def _own_tasks(data: OwnData) -> tuple[RetrievalTask, ...]:
    splits = data.load()
    labelled = splits.train.labels is not None
    n_classes = len(class_list(splits.train)) if labelled else 0
    features = Features(f"features of {data.name}", components=_MOST_FEATURES)
    room = min(*_MOST_FEATURES, *(np.shape(side)[1] for side in (splits.train.images, splits.train.texts)))
    few = min(room, max(2, (n_classes + 1) // 2))
    methods = all_methods(features, tuple(dict.fromkeys((few, min(room, 4 * few)))), _KERNEL_RANK)
    if not labelled:
        methods = tuple(entry for entry in methods if "labels" not in entry.method.needs)
    hold_outs = HoldOut(repeats=3)
    protocols: list[tuple[str, RetrievalProtocol]] = [
        ("standard-{}", StandardSplit(hold_outs)),
        ("draws-{}", RandomDraws(draws=_OWN_FOLDS, hold_outs=hold_outs)),
    ]
    if n_classes >= _FEWEST_SEEN:
        protocols.append(("extendable-{}-seen", SeenClasses()))
    if n_classes >= _FEWEST_UNSEEN:
        protocols.append(("extendable-{}-unseen", UnseenClasses()))
    return tuple(
        RetrievalTask(
            name=pattern.format(data.name),
            title=f"{data.name}, {protocol.setting}",
            dataset=data.name,
            features=features,
            protocol=protocol,
            methods=methods,
            source=data.dataset(),
            data_digest=str(splits.options["digest"]),
        )
        for pattern, protocol in protocols
    )
