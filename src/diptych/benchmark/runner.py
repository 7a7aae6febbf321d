"""Runs comparisons: what all have in common, and tasks that choose on training data and ask the test pairs once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import TypeVar

import numpy as np

from diptych.benchmark.published import DISTANCES, published_distance
from diptych.benchmark.report import DistanceRow, MissingTask, Row, StudyReport, TaskReport
from diptych.benchmark.task import Method, SensitivityCurve, Task, one_line
from diptych.data import Pairs
from diptych.errors import MissingDataError, MissingPackageError, UnknownNameError
from diptych.metrics import AP, InterpolatedPrecisionRecall, bootstrap_interval
from diptych.protocols import Tuning, evaluate_model, tune
from diptych.protocols.journal import Progress
from diptych.space import DIRECTIONS

Stage = Callable[[str], AbstractContextManager[Progress]]

LACKS_LABELS = "learns from labels, of which there are none"
M = TypeVar("M")
R = TypeVar("R")


@contextmanager
def silent_stage(title: str) -> Iterator[Progress]:
    """Enter a long step of which nobody hears."""
    yield lambda done, total: None


def select_methods(
    kind: str, known: Mapping[str, M], names: Collection[str] | None, *, as_declared: bool = False
) -> dict[str, M]:
    """Return the methods of these names in the order asked for, or in their own, and all without any name.

    >>> from diptych.benchmark.runner import select_methods
    >>> known = {"cca": 1, "cfa": 2, "sm": 3}
    >>> list(select_methods("method", known, ["sm", "cca"])), list(select_methods("method", known, None))
    (['sm', 'cca'], ['cca', 'cfa', 'sm'])
    """
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
        reason = why_not(method)
        if not reason:
            try:
                results += measure(key, method)
            except MissingPackageError as error:
                reason = str(error)
        if reason:
            left_out[key] = reason
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
                entry.model,
                splits.train,
                entry.grid,
                task.protocol,
                folder=folder,
                n_jobs=n_jobs,
                progress=progress,
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


_PAPER_NAMES = {"CCA": "CM", "SM": "SM", "SCM": "SCM"}


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


def run_study(
    study: Study,
    *,
    methods: Collection[str] | None = None,
    distances: bool = True,
    n_jobs: int = 1,
    folder: str | PathLike[str] | None = None,
    stage: Stage | None = None,
) -> StudyReport:
    """Run every task whose data and packages are on this machine, each as `run_task` does, and name the others.

    Where none can run, what the first one lacks is raised.
    """
    reports: list[TaskReport] = []
    missing: list[MissingTask] = []
    lacking: list[MissingDataError | MissingPackageError] = []
    for task in study.tasks:
        try:
            reports.append(
                run_task(task, methods=methods, distances=distances, n_jobs=n_jobs, folder=folder, stage=stage)
            )
        except (MissingDataError, MissingPackageError) as error:
            lacking.append(error)
            missing.append(MissingTask(task.name, task.title, str(error)))
    if not reports:
        raise lacking[0]
    return StudyReport(study.name, study.title, tuple(reports), tuple(missing))
