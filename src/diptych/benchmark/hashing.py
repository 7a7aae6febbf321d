"""Hashing methods compared at every length of code: what they reach, and what they cost."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from diptych._version import __version__
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
from diptych.errors import InvalidInputError, MissingPackageError, UnknownNameError
from diptych.metrics import AP
from diptych.models import CrossModalModel, model_classes
from diptych.models.hashing.hashing_model import HashingModel
from diptych.protocols.tuning_journal import pairs_digest, source_digest
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


@dataclass(frozen=True)
class BitBudgetReport:
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


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of values of folds and their standard deviation, 0 where there is one fold.

    >>> from diptych.benchmark.hashing import spread
    >>> spread([0.25, 0.5, 0.75])
    (0.5, 0.25)
    """
    if not values:
        raise InvalidInputError("nothing was measured there; choose another setting, method or length")
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


# Everything that a number of the journal depends on.
_SOURCES = (
    "arrays.py",
    "space.py",
    "codes",
    "data",
    "metrics",
    "models",
    "protocols",
    "benchmark/hashing.py",
    "benchmark/studies/hash_codes.py",
)


class CodeJournal:
    """A file with one line for each fit, so that the same comparison goes on where it was stopped.

    The name of the file is a digest of the features and of the code that measures them; a line that was cut off by a
    crash is ignored.
    """

    def __init__(self, folder: str | os.PathLike[str], task: HashingTask, splits: DatasetSplits) -> None:
        shape = (
            source_digest(*_SOURCES),
            task.name,
            task.images,
            task.texts,
            pairs_digest(splits.train),
            pairs_digest(splits.test),
        )
        name = hashlib.sha256("\0".join(shape).encode()).hexdigest()[:32]
        self.path = Path(folder) / f"{task.name}-{name}.jsonl"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._done = self._read()
        except OSError as problem:
            raise InvalidInputError(f"{self.path} cannot be used ({problem}); choose another folder") from None

    def known(self, method: CrossModalModel, n_bits: int, fold: int) -> list[CodeResult] | None:
        """Return the results of a fit that was measured before, or None."""
        return self._done.get(_key(method, n_bits, fold))

    def add(self, method: CrossModalModel, n_bits: int, fold: int, results: list[CodeResult]) -> None:
        """Append a fit; it is on disk when the call returns."""
        key = _key(method, n_bits, fold)
        line = json.dumps({"fit": key, "results": [result.as_json() for result in results]})
        with self.path.open("a", encoding="utf-8") as stream:
            # A line of its own, even after one that was cut off.
            stream.write(f"\n{line}\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._done[key] = results

    def _read(self) -> dict[str, list[CodeResult]]:
        done: dict[str, list[CodeResult]] = {}
        if not self.path.exists():
            return done
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry: dict[str, Any] = json.loads(line)
                done[str(entry["fit"])] = [CodeResult(**values) for values in entry["results"]]
            except (ValueError, KeyError, TypeError):
                continue
        return done


def _key(method: CrossModalModel, n_bits: int, fold: int) -> str:
    parameters = {name: repr(value) for name, value in method.get_params().items() if name not in ("n_bits", "seed")}
    return json.dumps([type(method).__name__, parameters, n_bits, fold], sort_keys=True)


Progress = Callable[[int, int], None]

Stage = Callable[[str], AbstractContextManager[Progress]]

BITS = (4, 8, 16, 32, 64, 128)


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
    chosen = _chosen(methods)
    stage = _silent if stage is None else stage
    with stage(f"loading {task.name}"):
        splits = task.load()
    journal = None if folder is None else CodeJournal(folder, task, splits)
    results: list[CodeResult] = []
    left_out: dict[str, str] = {}
    for name, cls in chosen.items():
        if "labels" in cls.needs and not task.has_classes:
            left_out[name] = "learns from labels, of which there are none"
            continue
        try:
            with stage(f"{task.name}: {name}") as progress:
                results += _measured(task, splits, cls(), sorted(set(bits)), folds, journal, n_jobs, progress)
        except MissingPackageError as error:
            left_out[name] = str(error)
    with stage("timing searches"):
        storage = tuple(measure_storage(length, n_searched) for length in sorted(set(bits)))
    supervised = tuple(name for name, cls in chosen.items() if "labels" in cls.needs)
    return BitBudgetReport(task, tuple(results), storage, supervised, left_out)


@contextmanager
def _silent(title: str) -> Iterator[Progress]:
    yield lambda done, total: None


def _chosen(methods: Collection[str] | None) -> dict[str, type[HashingModel]]:
    known = hashing_methods()
    for name in methods or ():
        if name not in known:
            raise UnknownNameError("hashing method", name, known)
    return known if not methods else {name: known[name] for name in methods}


def _measured(
    task: HashingTask,
    splits: DatasetSplits,
    method: HashingModel,
    bits: Sequence[int],
    folds: int,
    journal: CodeJournal | None,
    n_jobs: int,
    progress: Progress,
) -> list[CodeResult]:
    fits = [(length, fold) for length in bits for fold in range(folds)]
    known = {fit: journal.known(method, *fit) for fit in fits} if journal is not None else {}
    missing = [fit for fit in fits if known.get(fit) is None]
    runs = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(measure_fold)(task, splits, method, *fit) for fit in missing
    )
    done = {fit: results for fit, results in known.items() if results is not None}
    for fit, results in zip(missing, runs, strict=True):
        if journal is not None:
            journal.add(method, *fit, results)
        done[fit] = results
        progress(len(done), len(fits))
    return [result for fit in fits for result in done[fit]]
