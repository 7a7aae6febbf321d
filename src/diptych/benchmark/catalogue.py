"""The tasks, methods and units of one run, on declared data or on features of one's own."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.benchmark.methods import Plugin, all_methods, plugin_methods
from diptych.benchmark.papers import declared_tasks
from diptych.benchmark.task import QUICK_FOLDS, Features, Task, find_by_name
from diptych.data import Dataset, DatasetSplits, Pairs
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.protocols import (
    HoldOut,
    RandomDraws,
    RetrievalProtocol,
    SeenClasses,
    StandardSplit,
    UnseenClasses,
)
from diptych.protocols.journal import pairs_digest
from diptych.protocols.tuning import class_list

_TEST_SHARE = 0.25
_PARTS = ("train", "test")
_HELP = "see `diptych bench run --help`, option --data"
_MAX_FEATURES = (128, 64)
_OWN_FOLDS = 5
_KERNEL_RANK = 200
_MIN_SEEN_CLASSES = 4
# Half of the classes are learned from, and two of those must be left when two are held out.
_MIN_UNSEEN_CLASSES = 7


@dataclass(frozen=True)
class OwnData:
    """A folder, a CSV or an npz file of features: row i of the images and of the texts belong together.

    - npz: arrays ``images``, ``texts`` and perhaps ``labels``, ``split`` and ``ids``;
    - folder: the same as ``images.npy``, ``texts.npy``, ``labels.npy`` and so on, where labels, split and ids may be
      text files of one line each (``labels.txt``);
    - CSV: one row per pair; columns that begin with ``image`` and with ``text`` are features, ``label``, ``split`` and
      ``id`` are what they say.

    ``split`` says train or test for each pair; without it a quarter of the pairs, drawn with ``seed``, is the test
    part. Nothing in the files is executed.

    >>> import tempfile
    >>> import numpy as np
    >>> from diptych.benchmark.catalogue import OwnData
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/mine.npz", images=np.eye(8), texts=np.eye(8), labels=list("aabbccdd"))
    ...     splits = OwnData(f"{folder}/mine.npz").load()
    >>> splits.name, splits.train.n_images, splits.test.n_images
    ('mine', 6, 2)
    """

    path: str
    seed: int = 0

    @property
    def name(self) -> str:
        """The name of the file or folder, which names the tasks."""
        stem = Path(self.path).resolve().stem.lower()
        return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in stem).strip("-") or "own"

    def load(self) -> DatasetSplits:
        """Read the pairs and divide them."""
        columns = _read(Path(self.path))
        for needed in ("images", "texts"):
            if needed not in columns:
                raise InvalidInputError(f"{self.path} has no {needed}; {_HELP}")
        labels = columns.get("labels")
        pairs = Pairs(_matrix(columns, "images"), _matrix(columns, "texts"), labels=labels, ids=columns.get("ids"))
        options = {"digest": pairs_digest(pairs), "seed": self.seed}
        if "split" not in columns:
            stratify = (
                labels is not None and labels.ndim == 1 and bool((np.unique(labels, return_counts=True)[1] > 3).all())
            )
            train, test = pairs.split(_TEST_SHARE, seed=self.seed, stratify=stratify)
            return DatasetSplits(train=train, test=test, name=self.name, options=options)
        parts = np.char.lower(np.asarray(columns["split"], dtype=str))
        if len(parts) != pairs.n_images or not set(np.unique(parts)) == set(_PARTS):
            raise InvalidInputError(f"split of {self.path} must say train or test for each pair, both at least once")
        train, test = (pairs.select(parts == part) for part in _PARTS)
        return DatasetSplits(train=train, test=test, name=self.name, options=options)

    def dataset(self) -> Dataset:
        """Return the declaration of the data set."""
        return Dataset(
            name=self.name,
            summary=f"features of {self.path}",
            homepage="",
            citation="",
            licence="",
            splits="its own, or a quarter drawn at random",
            loader=lambda: self.load(),
        )


def _read(path: Path) -> dict[str, AnyArray]:
    if not path.exists():
        raise InvalidInputError(f"{path} does not exist; --data takes a folder, a CSV or an npz file of features")
    try:
        if path.is_dir():
            return _read_folder(path)
        if path.suffix.lower() == ".npz":
            with np.load(path) as arrays:
                return {name: arrays[name] for name in arrays.files}
        if path.suffix.lower() == ".csv":
            return _read_csv(path)
    except (OSError, ValueError) as problem:
        raise InvalidInputError(f"{path} cannot be read ({problem}); {_HELP}") from None
    raise InvalidInputError(f"{path} is no folder, CSV or npz file; {_HELP}")


def _read_folder(folder: Path) -> dict[str, AnyArray]:
    found: dict[str, AnyArray] = {}
    for name in ("images", "texts", "labels", "split", "ids"):
        if (folder / f"{name}.npy").exists():
            found[name] = np.load(folder / f"{name}.npy")
        elif (folder / f"{name}.txt").exists():
            found[name] = np.array((folder / f"{name}.txt").read_text(encoding="utf-8").splitlines())
    return found


def _read_csv(path: Path) -> dict[str, AnyArray]:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream)
        rows = list(reader)
        columns = reader.fieldnames or []
    found: dict[str, AnyArray] = {}
    for side in ("image", "text"):
        wanted = [column for column in columns if column.startswith(side)]
        if wanted:
            found[f"{side}s"] = np.array([[float(row[column]) for column in wanted] for row in rows])
    for column, name in (("label", "labels"), ("split", "split"), ("id", "ids")):
        if column in columns:
            found[name] = np.array([row[column] for row in rows])
    return found


def _matrix(columns: Mapping[str, Any], name: str) -> FloatArray:
    matrix = np.asarray(columns[name])
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"{name} must be a matrix of numbers, one row per item, got {matrix.dtype} {matrix.shape}"
        )
    return matrix.astype(np.float32)


@dataclass(frozen=True, order=True)
class Unit:
    """One method on one fold of one task."""

    task: str
    fold: int
    method: str

    def __str__(self) -> str:
        return f"{self.task}, {self.method}, fold {self.fold}"


@dataclass(frozen=True)
class Catalogue:
    """What decides the tasks of a run, in plain values that travel to every worker.

    ``folds`` replaces the number of class folds, draws or seeds, ``seed`` what they are drawn with; ``quick`` is for a
    first look, with coarser grids and fewer folds.
    """

    plugins: tuple[Plugin, ...] = ()
    data: OwnData | None = None
    folds: int | None = None
    seed: int = 0
    quick: bool = False

    def __post_init__(self) -> None:
        if self.folds is not None and self.folds < 1:
            raise InvalidInputError(f"folds must be at least 1, got {self.folds}")

    def tasks(self) -> dict[str, Task]:
        """Return the tasks by name; with own data, only those of that data."""
        return _tasks(self)

    def task(self, name: str) -> Task:
        """Return one task."""
        return find_by_name("task", name, self.tasks().values())

    def units(self, tasks: Sequence[str] = ("*",), methods: Sequence[str] = ("*",)) -> list[Unit]:
        """Return the units whose task and method match a pattern, folds of one task together.

        A pattern that matches nothing is an error.
        """
        known = self.tasks()
        chosen = [known[name] for name in _matching("task", known, tasks)]
        wanted = set(_matching("method", dict.fromkeys(one.name for task in chosen for one in task.methods), methods))
        return [
            Unit(task.name, fold, method.name)
            for task in chosen
            for fold in range(task.protocol.n_folds)
            for method in task.methods
            if method.name in wanted and fold in task.folds_of(method)
        ]


def _matching(kind: str, known: Iterable[str], patterns: Sequence[str]) -> list[str]:
    names = list(known)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UnknownNameError(kind, pattern, names)
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


@lru_cache(maxsize=4)
def _tasks(catalogue: Catalogue) -> dict[str, Task]:
    tasks = declared_tasks() if catalogue.data is None else _own_tasks(catalogue.data)
    return {task.name: _changed(catalogue, task) for task in tasks}


def _changed(catalogue: Catalogue, task: Task) -> Task:
    folds = catalogue.folds or (min(QUICK_FOLDS, task.protocol.n_folds) if catalogue.quick else None)
    task = replace(task, protocol=task.protocol.redrawn(folds, catalogue.seed))
    if catalogue.plugins:
        own = plugin_methods(task.features, catalogue.plugins)
        if task.relevant == "instance":
            own = tuple(method for method in own if not method.needs_labels)
        replaced = {method.name for method in own}
        task = replace(task, methods=(*own, *(one for one in task.methods if one.name not in replaced)))
    return task.quick() if catalogue.quick else task


def _own_tasks(data: OwnData) -> tuple[Task, ...]:
    splits = data.load()
    labelled = splits.train.labels is not None
    n_classes = len(class_list(splits.train)) if labelled else 0
    features = Features(f"features of {data.name}", components=_MAX_FEATURES)
    room = min(*_MAX_FEATURES, *(np.shape(side)[1] for side in (splits.train.images, splits.train.texts)))
    few = min(room, max(2, (n_classes + 1) // 2))
    methods = all_methods(features, tuple(dict.fromkeys((few, min(room, 4 * few)))), _KERNEL_RANK)
    if not labelled:
        methods = tuple(method for method in methods if not method.needs_labels)
    hold_outs = HoldOut(repeats=3)
    protocols: list[tuple[str, RetrievalProtocol]] = [
        ("standard-{}", StandardSplit(hold_outs)),
        ("draws-{}", RandomDraws(draws=_OWN_FOLDS, hold_outs=hold_outs)),
    ]
    if n_classes >= _MIN_SEEN_CLASSES:
        protocols.append(("extendable-{}-seen", SeenClasses()))
    if n_classes >= _MIN_UNSEEN_CLASSES:
        protocols.append(("extendable-{}-unseen", UnseenClasses()))
    return tuple(
        Task(
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
