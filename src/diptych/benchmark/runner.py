"""Runs comparisons, tasks that choose on training data and ask the test pairs once, and what they found."""

from __future__ import annotations

import os
import platform
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from typing import Any, TypeVar

import numpy as np

from diptych._version import __version__
from diptych.benchmark.published import DISTANCES, MapScore, Published, PublishedTraining, published_distance
from diptych.benchmark.task import Method, SensitivityCurve, Task, one_line
from diptych.data import Pairs
from diptych.errors import InvalidInputError, MissingDataError, MissingPackageError, UnknownNameError
from diptych.metrics import AP, InterpolatedPrecisionRecall, bootstrap_interval
from diptych.protocols import Tuning, evaluate_model, tune
from diptych.protocols.journal import Progress
from diptych.space import DIRECTIONS, Direction

LACKS_LABELS = "learns from labels, of which there are none"
M = TypeVar("M")
R = TypeVar("R")
_PAPER_NAMES = {"CCA": "CM", "SM": "SM", "SCM": "SCM"}


class BenchmarkReport(ABC):
    """What every comparison gives: results to print, and everything as plain values to write."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""


def package_versions() -> dict[str, str]:
    """Return the versions of Diptych, Python and what numbers are computed with."""
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"diptych": __version__, "python": platform.python_version(), **packages}


def machine_name() -> str:
    """Return the system, the processor's kind and the number of cores."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def provenance() -> dict[str, Any]:
    """Return what a written document of numbers says of its origin: when, by which versions, on which machine."""
    return {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": package_versions(),
        "machine": machine_name(),
    }


def plain_value(value: Any) -> Any:
    """Return a value of a parameter as JSON has it, or its representation where JSON has none."""
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of values of folds or seeds and their standard deviation, 0 where there is one."""
    if not values:
        raise InvalidInputError("nothing was measured there; choose another setting, method or length")
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class Row(MapScore):
    """One method: test MAP in both directions, spread, printed value, and what was chosen on training data.

    ``parameters`` are the chosen ones; ``model`` is the whole model as an expression that makes it again. ``precision``
    is, for each direction, the interpolated precision at recall 0, 0.1, … 1.
    """

    name: str
    image_query: float
    text_query: float
    interval: tuple[float, float]
    published: Published | None
    same_features: bool
    parameters: dict[str, Any]
    model: str
    validation: float
    validation_deviation: float
    fit_seconds: float
    tune_seconds: float
    precision: dict[Direction, tuple[float, ...]]
    training: PublishedTraining | None = None
    group: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's average, where there is one."""
        return None if self.published is None else self.average - self.published.average


@dataclass(frozen=True)
class DistanceRow:
    """One method under one way to compare points: mean MAP over the hold-outs, and the paper's validation value."""

    method: str
    metric: str
    average: float
    deviation: float
    published: float | None


@dataclass(frozen=True)
class TaskReport(BenchmarkReport):
    """All rows of one benchmark, with its chance level; ``notes`` say what a reader must know of the data."""

    task: str
    title: str
    chance: float
    rows: tuple[Row, ...]
    distances: tuple[DistanceRow, ...]
    sensitivities: tuple[SensitivityCurve, ...] = ()
    notes: tuple[str, ...] = ()

    def row(self, name: str) -> Row:
        """Return the row called ``name``."""
        return next(row for row in self.rows if row.name == name)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values, with averages and the version that measured them."""
        rows = [asdict(row) | {"average": row.average, "difference": row.difference} for row in self.rows]
        return asdict(self) | {"rows": rows, "measure": "AP()", "ties": "expected", "diptych": __version__}


@dataclass(frozen=True)
class MissingTask:
    """A task that could not run here, and what it lacks."""

    task: str
    title: str
    reason: str


@dataclass(frozen=True)
class StudyReport(BenchmarkReport):
    """What each task found, and which tasks lack their data."""

    study: str
    title: str
    reports: tuple[TaskReport, ...]
    missing: tuple[MissingTask, ...]

    def report(self, task: str) -> TaskReport:
        """Return the report of the task called ``task``."""
        return next(report for report in self.reports if report.task == task)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "study": self.study,
            "title": self.title,
            "reports": [report.as_json() for report in self.reports],
            "missing": [asdict(task) for task in self.missing],
        }


Stage = Callable[[str], AbstractContextManager[Progress]]


@contextmanager
def silent_stage(title: str) -> Iterator[Progress]:
    """Enter a long step without reporting progress."""
    yield lambda done, total: None


def select_methods(
    kind: str, known: Mapping[str, M], names: Collection[str] | None, *, as_declared: bool = False
) -> dict[str, M]:
    """Return the methods of these names in the order asked for, or in their own, and all without any name."""
    for name in names or ():
        if name not in known:
            raise UnknownNameError(kind, name, known)
    wanted = known if not names else [key for key in known if key in names] if as_declared else names
    return {key: known[key] for key in wanted}


def measure_methods(
    methods: Mapping[str, M], measure: Callable[[str, M], Sequence[R]], why_not: Callable[[M], str]
) -> tuple[tuple[R, ...], dict[str, str]]:
    """Return what all methods give, and why some were left out: a reason of ``why_not``, or a package is not here."""
    results: list[R] = []
    left_out: dict[str, str] = {}
    for key, method in methods.items():
        if reason := why_not(method):
            left_out[key] = reason
            continue
        try:
            results += measure(key, method)
        except MissingPackageError as error:
            left_out[key] = str(error)
    return tuple(results), left_out


def run_task(
    task: Task,
    *,
    methods: Collection[str] | None = None,
    distances: bool = True,
    n_jobs: int = 1,
    folder: str | PathLike[str] | None = None,
    stage: Stage | None = None,
) -> TaskReport:
    """Run every entry of ``task`` and, for those that ask for it, every distance measure and sensitivity curve.

    Parameters are chosen by the task's hold-out protocol on the training pairs; the test pairs are scored once per
    entry, with the chosen setting. Distances are compared on the hold-outs, never on the test pairs; a sensitivity
    curve shows test scores after everything is chosen. ``methods`` names the entries wanted. In ``folder`` every fit is
    noted, so that a run that was stopped goes on. ``stage(title)`` is entered around each long step and gives a
    function (done, total) to call.
    """
    known = {_slug(entry.name): entry for entry in task.entries}
    wanted = None if methods is None else [_slug(method) for method in methods]
    entries = select_methods(f"entry of the benchmark {task.name}", known, wanted).values()
    stage = stage or silent_stage
    with stage("loading and encoding"):
        splits = task.load()
    rows: list[Row] = []
    compared: list[DistanceRow] = []
    curves: list[SensitivityCurve] = []
    chance = 0.0
    for entry in entries:
        with stage(f"tuning {entry.name}") as progress:
            tuning = tune(
                entry.model, splits.train, entry.grid, task.protocol, folder=folder, n_jobs=n_jobs, progress=progress
            )
        row, chance = _row(entry, tuning, splits.test)
        rows.append(row)
        if distances and entry.distances:
            with stage(f"comparing distances of {entry.name}") as progress:
                compared += _distances(task, entry, tuning, splits.train, n_jobs, progress)
        for sensitivity in (wanted for wanted in task.sensitivities if wanted.entry == entry.name):
            with stage(f"varying {sensitivity.label}"):
                curves.append(sensitivity.measure(tuning.model, splits, n_jobs))
    return TaskReport(task.name, task.title, chance, tuple(rows), tuple(compared), tuple(curves), task.notes)


def _slug(name: str) -> str:
    """Return the name as people type it: ``marginal SM`` is ``marginal-sm``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


def _row(entry: Method, tuning: Tuning, test: Pairs) -> tuple[Row, float]:
    curve = InterpolatedPrecisionRecall()
    result = evaluate_model(tuning.model, test, [AP(), curve])
    both = [result.image_query.values[AP()], result.text_query.values[AP()]]
    interval = bootstrap_interval(np.concatenate(both))
    row = Row(
        name=entry.name,
        image_query=result.image_query.mean[AP()],
        text_query=result.text_query.mean[AP()],
        interval=(interval.low, interval.high),
        published=None if entry.reference is None else entry.reference.look_up(),
        same_features=entry.reference is None or entry.reference.same_features,
        parameters=tuning.best.parameters,
        model=one_line(tuning.model),
        validation=tuning.best.mean,
        validation_deviation=tuning.best.deviation,
        fit_seconds=tuning.fit_seconds,
        tune_seconds=sum(trial.seconds for trial in tuning.trials),
        precision={way: tuple(result[way].curves[curve].y.tolist()) for way in DIRECTIONS},
        training=None if entry.reference is None else entry.reference.look_up_training(),
        group=entry.group,
    )
    return row, result.chance(AP())


def _distances(
    task: Task, entry: Method, tuning: Tuning, train: Pairs, n_jobs: int, progress: Progress
) -> list[DistanceRow]:
    metrics = [metric for metric in DISTANCES if entry.name != "CCA" or metric != "kl"]
    grid = {"model__metric": metrics}
    trials = tune(tuning.model, train, grid, task.protocol, n_jobs=n_jobs, progress=progress).trials
    printed = [
        published_distance(task.dataset, _PAPER_NAMES[entry.name], metric).average if task.published_distances else None
        for metric in metrics
    ]
    return [
        DistanceRow(entry.name, metric, trial.mean, trial.deviation, published)
        for metric, trial, published in zip(metrics, trials, printed, strict=True)
    ]


@dataclass(frozen=True)
class Study:
    """Tasks under one name."""

    name: str
    title: str
    tasks: tuple[Task, ...]

    def coarser(self) -> Study:
        """Return the study with a first look at every task."""
        return Study(self.name, self.title, tuple(task.coarser() for task in self.tasks))


def run_study(study: Study, run: Callable[[Task], TaskReport] = run_task) -> StudyReport:
    """Run every task whose data and packages are on this machine, and name the others.

    Where none can run, what the first one lacks is raised. ``run`` is `run_task` with its options.
    """
    reports: list[TaskReport] = []
    missing: list[MissingTask] = []
    first: MissingDataError | MissingPackageError | None = None
    for task in study.tasks:
        try:
            reports.append(run(task))
        except (MissingDataError, MissingPackageError) as error:
            first = first or error
            missing.append(MissingTask(task.name, task.title, str(error)))
    if first is not None and not reports:
        raise first
    return StudyReport(study.name, study.title, tuple(reports), tuple(missing))
