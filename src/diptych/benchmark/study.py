"""Several benchmarks that belong together, such as the tables of one paper."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike

from diptych.benchmark.report import TaskReport
from diptych.benchmark.runner import Stage, run_task
from diptych.benchmark.study_report import MissingTask, StudyReport
from diptych.benchmark.task import Task
from diptych.errors import MissingDataError, MissingPackageError


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
