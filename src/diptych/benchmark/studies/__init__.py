"""The studies there are, each a declaration: data, methods, settings, and what the papers print."""

from __future__ import annotations

from diptych.benchmark.runner import Study
from diptych.benchmark.studies.menon import MENON, PAIRWISE
from diptych.benchmark.task import Task, find_by_name
from diptych.errors import UnknownNameError

_STUDIES = {
    "pairwise": Study("pairwise", "Menon et al. 2015, Tables 1 to 3, and subspace methods", PAIRWISE),
}


def task_names() -> tuple[str, ...]:
    """Return the names of all benchmarks."""
    return tuple(task.name for task in MENON)


def find_task(name: str) -> Task:
    """Return the benchmark called ``name``; a typo gets a suggestion."""
    return find_by_name("benchmark", name, MENON)


def study_names() -> tuple[str, ...]:
    """Return the names of the studies of several tasks."""
    return tuple(_STUDIES)


def find_study(name: str) -> Study:
    """Return the study called ``name``, or the task of that name as a study of its own; a typo gets a suggestion.

    >>> from diptych.benchmark import find_study
    >>> [task.name for task in find_study("pairwise").tasks]
    ['pairwise-wikipedia', 'pairwise-pascal', 'pairwise-tvgraz']
    >>> [task.name for task in find_study("scenes").tasks]
    ['scenes']
    """
    if name in _STUDIES:
        return _STUDIES[name]
    if name not in task_names():
        raise UnknownNameError("benchmark", name, (*task_names(), *_STUDIES))
    task = find_task(name)
    return Study(name, task.title, (task,))
