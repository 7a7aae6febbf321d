"""Every method with every kind of features."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from diptych.benchmark.web.web_data import WebData
from diptych.benchmark.web.web_methods import WebMethod, web_methods
from diptych.benchmark.web.web_report import WebReport
from diptych.benchmark.web.web_run import measure_run
from diptych.errors import UnknownNameError

Stage = Callable[[str], AbstractContextManager[Any]]


def run_web(
    data: WebData,
    *,
    methods: Collection[str] | None = None,
    folder: str | PathLike[str] | None = None,
    stage: Stage | None = None,
    seeds: int = 5,
) -> WebReport:
    """Fit and score every method, and return the report; in ``folder`` scores are kept, so that a run can go on.

    ``stage(title)`` is entered around each fit. ``seeds`` are the draws of noise that are averaged.
    """
    chosen = chosen_methods(methods)
    enter: Stage = nullcontext if stage is None else stage
    runs = []
    for method in chosen:
        for feature in data.features:
            with enter(f"{method.title}, {feature}"):
                runs.append(measure_run(data, method, feature, None if folder is None else Path(folder)))
    return WebReport(data, chosen, runs, seeds=seeds)


def chosen_methods(names: Collection[str] | None) -> list[WebMethod]:
    """Return the methods of these names, all without any; a typo gets a suggestion.

    >>> from diptych.benchmark.web.running import chosen_methods
    >>> [method.title for method in chosen_methods(["psi"])]
    ['PSI']
    """
    known = web_methods()
    for name in names or ():
        if name not in known:
            raise UnknownNameError("method of the click benchmark", name, known)
    return [method for name, method in known.items() if not names or name in names]
