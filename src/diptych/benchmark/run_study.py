"""Runs a task or a study: choose on training data, fit once more, ask the test pairs once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from os import PathLike

import numpy as np

from diptych.benchmark.published import published_map
from diptych.benchmark.task import Entry, SensitivityCurve, Task
from diptych.benchmark.task_report import DistanceRow, MissingTask, Row, StudyReport, TaskReport
from diptych.data import Pairs
from diptych.errors import MissingDataError, MissingPackageError, UnknownNameError
from diptych.metrics import AP, InterpolatedPrecisionRecall, bootstrap_interval
from diptych.protocols import Tuning, evaluate_model, tune
from diptych.space import DIRECTIONS

Progress = Callable[[int, int], None]

Stage = Callable[[str], AbstractContextManager[Progress]]

# The measures of Table IV of Costa Pereira et al. (2014), with the names that paper prints.
DISTANCES = {"l1": "l1", "euclidean": "l2", "kl": "KL", "cosine": "NC", "pearson": "NCc"}

_PAPER_NAMES = {"CCA": "CM", "SM": "SM", "SCM": "SCM"}


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
    entries = _chosen(task, methods)
    stage = _silent if stage is None else stage
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


@contextmanager
def _silent(title: str) -> Iterator[Progress]:
    yield lambda done, total: None


def _chosen(task: Task, methods: Collection[str] | None) -> list[Entry]:
    if methods is None:
        return list(task.entries)
    by_name = {_slug(entry.name): entry for entry in task.entries}
    for method in methods:
        if _slug(method) not in by_name:
            raise UnknownNameError(f"entry of the benchmark {task.name}", method, by_name)
    return [by_name[_slug(method)] for method in methods]


def _slug(name: str) -> str:
    """Return the name as people type it: ``marginal SM`` is ``marginal-sm``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


def _row(entry: Entry, tuning: Tuning, test: Pairs) -> tuple[Row, float]:
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
        model=" ".join(repr(tuning.model).split()),
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
    task: Task, entry: Entry, tuning: Tuning, train: Pairs, n_jobs: int, progress: Progress
) -> list[DistanceRow]:
    metrics = [metric for metric in DISTANCES if entry.name != "CCA" or metric != "kl"]
    grid = {"model__metric": metrics}
    trials = tune(tuning.model, train, grid, task.protocol, n_jobs=n_jobs, progress=progress).trials
    return [
        DistanceRow(entry.name, metric, trial.mean, trial.deviation, _published_distance(task, entry.name, metric))
        for metric, trial in zip(metrics, trials, strict=True)
    ]


def _published_distance(task: Task, name: str, metric: str) -> float | None:
    if not task.published_distances:
        return None
    regime = f"validation set; distance {DISTANCES[metric]}"
    return published_map("004", "Table IV", task.dataset, _PAPER_NAMES[name], regime).average


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
