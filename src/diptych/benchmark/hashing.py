"""Hashing methods compared at every length of code: what they reach, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from os import PathLike
from typing import Any

from joblib import delayed

from diptych._version import __version__
from diptych.benchmark.runner import (
    LACKS_LABELS,
    BenchmarkReport,
    Stage,
    measure_methods,
    select_methods,
    silent_stage,
    spread,
)
from diptych.benchmark.studies.hash_codes import (
    SETTING_TITLES,
    CodeResult,
    CodeStorage,
    HashingTask,
    codes_of,
    find_hashing_task,
    hashing_task_names,
    look_up,
    measure_fold,
    measure_storage,
)
from diptych.data import DatasetSplits
from diptych.errors import InvalidInputError
from diptych.metrics import AP
from diptych.models import model_classes
from diptych.models.hashing.hashing_model import HashingModel
from diptych.protocols.journal import Journal, pairs_digest, run_noted, source_digest
from diptych.space import DIRECTIONS

__all__ = [
    "BITS",
    "SETTING_TITLES",
    "BitBudgetReport",
    "CodeResult",
    "CodeStorage",
    "HashingTask",
    "codes_of",
    "find_hashing_task",
    "hashing_methods",
    "hashing_task_names",
    "look_up",
    "measure_storage",
    "run_bit_budget",
    "spread",
]

# Everything that a number of the journal depends on.
_SOURCES = (
    "arrays.py",
    "space.py",
    "codes",
    "data",
    "metrics",
    "models",
    "protocols",
    "benchmark/task.py",
    "benchmark/hashing.py",
    "benchmark/studies/hash_codes.py",
)
BITS = (4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class BitBudgetReport(BenchmarkReport):
    """The results of every method, length and fold on one data set, and what codes of each length cost.

    ``supervised`` names the methods that learn from labels; ``left_out`` says why a method is not here.
    """

    task: HashingTask
    results: tuple[CodeResult, ...]
    storage: tuple[CodeStorage, ...]
    supervised: tuple[str, ...]
    left_out: dict[str, str]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order in which they were measured."""
        return tuple(dict.fromkeys(result.method for result in self.results))

    @property
    def bits(self) -> tuple[int, ...]:
        """The lengths of the codes, ascending."""
        return tuple(sorted({result.n_bits for result in self.results}))

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len({result.fold for result in self.results})

    def select(self, setting: str, method: str | None = None, n_bits: int | None = None) -> list[CodeResult]:
        """Return the results of a setting, of one method and length where they are given."""
        return [
            result
            for result in self.results
            if result.setting == setting and method in (None, result.method) and n_bits in (None, result.n_bits)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values, with means and deviations over the folds."""
        return {
            "task": self.task.name,
            "title": self.task.title,
            "notes": list(self.task.notes),
            "ties": "expected",
            "gallery": "view codes; unified_map has one code of both sides for every item of the gallery",
            "denominator": "all relevant items",
            "folds": self.n_folds,
            "supervised": list(self.supervised),
            "left_out": self.left_out,
            "means": [
                self._mean(setting, method, bits) for setting in self.task.settings for method, bits in self._fits
            ],
            "storage": [
                asdict(cost)
                | {"bytes_per_item": cost.bytes_per_item, "megabytes_per_million": cost.megabytes_per_million}
                for cost in self.storage
            ],
            "results": [result.as_json() for result in self.results],
            "diptych": __version__,
        }

    @property
    def _fits(self) -> list[tuple[str, int]]:
        return [(method, bits) for method in self.methods for bits in self.bits]

    def _mean(self, setting: str, method: str, n_bits: int) -> dict[str, Any]:
        chosen = self.select(setting, method, n_bits)
        values: dict[str, Any] = {"setting": setting, "method": method, "n_bits": n_bits, "folds": len(chosen)}
        for way in DIRECTIONS:
            mean, deviation = spread([result.measures[AP().label][way] for result in chosen])
            chance, _ = spread([result.chance[AP().label][way] for result in chosen])
            values[way] = {"map": mean, "deviation": deviation, "chance": chance}
        return values


def code_journal(folder: str | PathLike[str], task: HashingTask, splits: DatasetSplits) -> Journal[list[CodeResult]]:
    """Return the journal of a task: its name is a digest of the features and of the code that measures them."""
    features = (task.name, task.images, task.texts, pairs_digest(splits.train), pairs_digest(splits.test))
    return Journal(
        folder,
        (source_digest(*_SOURCES), *features),
        read=lambda value: [CodeResult(**values) for values in value],
        write=lambda results: [result.as_json() for result in results],
        prefix=f"{task.name}-",
    )


def fit_key(method: HashingModel, n_bits: int, fold: int) -> str:
    """Return what tells one fit of a task from another."""
    given_by_fold = ("n_bits", "random_state")
    chosen = method.get_params().items()
    parameters = {name: repr(value) for name, value in chosen if name not in given_by_fold}
    return json.dumps([type(method).__name__, parameters, n_bits, fold], sort_keys=True)


def hashing_methods() -> dict[str, type[HashingModel]]:
    """Return every public hashing method by its command-line name.

    >>> from diptych.benchmark.hashing import hashing_methods
    >>> hashing_methods()["cvh"].__name__
    'CVH'
    """
    return {name: cls for name, cls in model_classes().items() if issubclass(cls, HashingModel)}


def run_bit_budget(
    task: HashingTask,
    *,
    bits: Sequence[int] = BITS,
    methods: Collection[str] | None = None,
    folds: int = 5,
    n_jobs: int = 1,
    n_searched: int = 1_000_000,
    folder: str | PathLike[str] | None = None,
    stage: Stage | None = None,
) -> BitBudgetReport:
    """Measure every hashing method at every length and fold of a task.

    Methods keep their default parameters, so that nothing is chosen on test data. Methods that learn from labels are
    left out where there are none, and so are those whose packages are not installed; the report says why.
    ``n_searched`` random codes are searched to time each length. In ``folder`` every fit is noted, so that a run that
    was stopped goes on. ``stage(title)`` is entered around each long step and gives a function (done, total) to call.
    """
    if not bits or min(bits) < 1:
        raise InvalidInputError(f"bits must be lengths of at least 1, got {list(bits)}")
    if folds < 1:
        raise InvalidInputError(f"folds must be at least 1, got {folds}")
    chosen = select_methods("hashing method", hashing_methods(), methods)
    lengths = sorted(set(bits))
    stage = stage or silent_stage
    with stage(f"loading {task.name}"):
        splits = task.load()
    journal = None if folder is None else code_journal(folder, task, splits)

    def measure(name: str, cls: type[HashingModel]) -> list[CodeResult]:
        method = cls()
        calls = [
            (fit_key(method, length, fold), delayed(measure_fold)(task, splits, method, length, fold))
            for length in lengths
            for fold in range(folds)
        ]
        with stage(f"{task.name}: {name}") as progress:
            fits = run_noted(calls, journal, n_jobs=n_jobs, progress=progress)
        return list(chain.from_iterable(fits))

    supervised = tuple(name for name, cls in chosen.items() if "labels" in cls.needs)
    results, left_out = measure_methods(
        chosen, measure, lambda cls: LACKS_LABELS if "labels" in cls.needs and not task.has_classes else ""
    )
    with stage("timing searches"):
        storage = tuple(measure_storage(length, n_searched) for length in lengths)
    return BitBudgetReport(task, results, storage, supervised, left_out)
