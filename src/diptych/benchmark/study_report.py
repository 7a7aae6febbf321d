"""What a study found, as values that print and serialise."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from diptych.benchmark.report import TaskReport


@dataclass(frozen=True)
class MissingTask:
    """A task that could not run here, and what it lacks."""

    task: str
    title: str
    reason: str


@dataclass(frozen=True)
class StudyReport:
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
