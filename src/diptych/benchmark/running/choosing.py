"""Choosing the parameters of a method and fitting it, from training pairs alone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from diptych.benchmark.entry import Entry
from diptych.metrics import Measure
from diptych.models import CrossModalModel
from diptych.protocols import Training, tune


@dataclass(frozen=True)
class Choice:
    """A fitted model, the parameters it was given, and how they did on the hold-outs (None where nothing was tried)."""

    model: CrossModalModel
    parameters: dict[str, Any]
    mean: float | None
    deviation: float | None
    trials: int
    tune_seconds: float
    fit_seconds: float


def choose(entry: Entry, training: Training, measure: Measure) -> Choice:
    """Try every setting on the hold-outs, and fit the best on all training pairs.

    Training pairs are all that comes in; a single setting is fitted without a trial.
    """
    settings = list(ParameterGrid([{name: list(values) for name, values in part.items()} for part in entry.grid]))
    start = time.perf_counter()
    if len(settings) == 1:
        model = clone(entry.model).set_params(**settings[0]).fit(*training.pairs.aligned())
        return Choice(model, dict(settings[0]), None, None, 0, 0.0, time.perf_counter() - start)
    tuning = tune(entry.model, training.pairs, entry.grid, training.hold_outs, measure=measure)
    spent = time.perf_counter() - start - tuning.fit_seconds
    best = tuning.best
    trials = len(tuning.trials)
    return Choice(tuning.model, best.parameters, best.mean, best.deviation, trials, spent, tuning.fit_seconds)
