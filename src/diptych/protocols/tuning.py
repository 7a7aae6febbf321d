"""Choosing parameters on training data alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import AP, Measure
from diptych.models import CrossModalModel
from diptych.protocols.hold_out import HoldOut
from diptych.protocols.standard import evaluate_model

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Trial:
    """One setting and its score on each hold-out: the mean of both directions."""

    parameters: dict[str, Any]
    scores: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean over the hold-outs."""
        return float(np.mean(self.scores))

    @property
    def deviation(self) -> float:
        """The standard deviation over the hold-outs."""
        return float(np.std(self.scores))


@dataclass(frozen=True)
class Tuning:
    """Every trial of a search, and the model refitted on all training pairs with the best setting."""

    trials: tuple[Trial, ...]
    best: Trial
    model: CrossModalModel
    fit_seconds: float


def tune(
    model: CrossModalModel,
    pairs: Pairs,
    grid: Grid,
    protocol: HoldOut | None = None,
    *,
    measure: Measure | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Tuning:
    """Try every setting of ``grid`` on the hold-outs of ``pairs`` and refit the best on all of them.

    The objective is the mean of ``measure`` (MAP by default) over both directions and all hold-outs; the first of equal
    settings wins. Only training pairs come in, so test data cannot leak. ``progress(done, total)`` is called after each
    fit.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.models import CCA
    >>> from diptych.protocols import HoldOut, tune
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(60, 3))
    >>> pairs = Pairs(meaning @ rng.normal(size=(3, 6)), meaning @ rng.normal(size=(3, 5)))
    >>> tune(CCA(), pairs, {"n_components": [1, 3]}, HoldOut(repeats=2)).best.parameters
    {'n_components': 3}
    """
    settings = list(ParameterGrid(_as_dicts(grid)))
    if not settings:
        raise InvalidInputError("the grid holds no setting to try")
    measure = AP() if measure is None else measure
    splits = list((protocol or HoldOut()).splits(pairs))
    jobs = [(number, split) for number in range(len(settings)) for split in range(len(splits))]
    scores, seconds = np.zeros((len(settings), len(splits))), np.zeros(len(settings))
    runs = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_run)(model, settings[number], *splits[split], measure) for number, split in jobs
    )
    for done, ((number, split), (score, elapsed)) in enumerate(zip(jobs, runs, strict=True), start=1):
        scores[number, split] = score
        seconds[number] += elapsed
        if progress is not None:
            progress(done, len(jobs))
    trials = tuple(
        Trial(setting, tuple(map(float, row)), float(spent))
        for setting, row, spent in zip(settings, scores, seconds, strict=True)
    )
    best = max(trials, key=lambda trial: trial.mean)
    start = time.perf_counter()
    fitted = _with(model, best.parameters).fit(*pairs.aligned())
    return Tuning(trials, best, fitted, time.perf_counter() - start)


def _as_dicts(grid: Grid) -> list[dict[str, list[Any]]]:
    parts = [grid] if isinstance(grid, Mapping) else list(grid)
    return [{name: list(values) for name, values in part.items()} for part in parts]


def _with(model: CrossModalModel, parameters: Mapping[str, Any]) -> CrossModalModel:
    changed: CrossModalModel = clone(model).set_params(**parameters)
    return changed


def _run(
    model: CrossModalModel, parameters: Mapping[str, Any], train: Pairs, held_out: Pairs, measure: Measure
) -> tuple[float, float]:
    start = time.perf_counter()
    fitted = _with(model, parameters).fit(*train.aligned())
    return evaluate_model(fitted, held_out, [measure]).average(measure), time.perf_counter() - start
