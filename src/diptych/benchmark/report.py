"""What a benchmark or a study of several found, as values that print and serialise."""

from __future__ import annotations

import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from diptych._version import __version__
from diptych.benchmark.published import MapScore, Published, PublishedTraining
from diptych.benchmark.task import SensitivityCurve
from diptych.errors import InvalidInputError
from diptych.space import Direction


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
    """Return what a written document of numbers says of its origin: when, by which versions, on which machine.

    >>> from diptych.benchmark.report import provenance
    >>> sorted(provenance())
    ['machine', 'versions', 'written']
    """
    return {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": package_versions(),
        "machine": machine_name(),
    }


def plain_value(value: Any) -> Any:
    """Return a value of a parameter as JSON has it, or its representation where JSON has none."""
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of values of folds or seeds and their standard deviation, 0 where there is one.

    >>> from diptych.benchmark.hashing import spread
    >>> spread([0.25, 0.5, 0.75])
    (0.5, 0.25)
    """
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
