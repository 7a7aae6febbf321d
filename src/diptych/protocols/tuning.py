"""Choosing parameters on training data alone."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.metrics import AP, Measure
from diptych.models import CrossModalModel
from diptych.protocols.hold_outs import HoldOut, HoldOuts
from diptych.protocols.retrieval import Retrieval, evaluate_retrieval
from diptych.protocols.tuning_journal import TuningJournal


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


Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]

Progress = Callable[[int, int], None]


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
    protocol: HoldOuts | None = None,
    *,
    measure: Measure | None = None,
    rescaled: Sequence[str] = (),
    folder: str | PathLike[str] | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Tuning:
    """Try every setting of ``grid`` on the hold-outs of ``pairs`` and refit the best on all of them.

    The objective is the mean of ``measure`` (MAP by default) over both directions and all hold-outs; the first of equal
    settings wins. Only training pairs come in, so test data cannot leak.

    Parameters
    ----------
    protocol :
        `HoldOut()` by default, the protocol of Menon et al. (2015); ``HoldOut(repeats=1, share=0.2)`` is that of Costa
        Pereira et al. (2014); `ClassHoldOut` asks for classes that were not learned; `QueryHoldOut` and
        `ClassQueryHoldOut` do what the protocols of Liu et al. do in the end.
    rescaled :
        Names of whole-number parameters, such as the number of kernel components, that grow with the number of training
        pairs: the final fit multiplies them by the ratio of its pairs to those of a hold-out's fit, as Costa Pereira
        et al. do.
    folder :
        Where to keep a journal of every fit; the same search started again does not repeat what is in it.
    n_jobs :
        Processes that fit at the same time.
    progress :
        Called as ``progress(done, total)`` after each fit.

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
    protocol = HoldOut() if protocol is None else protocol
    splits: list[tuple[Pairs, Pairs | Retrieval]] = [*protocol.splits(pairs)]
    journal = None if folder is None else TuningJournal(folder, pairs, model, protocol, measure)
    trials = _trials(model, settings, splits, measure, journal, n_jobs, progress)
    best = max(trials, key=lambda trial: trial.mean)
    growth = pairs.n_images / np.mean([train.n_images for train, _ in splits])
    parameters = best.parameters | {
        name: _rescaled_parameter(best.parameters, name, float(growth)) for name in rescaled
    }
    start = time.perf_counter()
    fitted = _with_parameters(model, parameters).fit(*pairs.aligned())
    return Tuning(trials, best, fitted, time.perf_counter() - start)


def _trials(
    model: CrossModalModel,
    settings: Sequence[Mapping[str, Any]],
    splits: Sequence[tuple[Pairs, Pairs | Retrieval]],
    measure: Measure,
    journal: TuningJournal | None,
    n_jobs: int,
    progress: Progress | None,
) -> tuple[Trial, ...]:
    scores, seconds = np.zeros((len(settings), len(splits))), np.zeros(len(settings))
    jobs, done, total = [], 0, len(settings) * len(splits)
    for number, setting in enumerate(settings):
        for split in range(len(splits)):
            known = None if journal is None else journal.known(setting, split)
            if known is None:
                jobs.append((number, split))
                continue
            scores[number, split], done = known[0], done + 1
            seconds[number] += known[1]
    runs = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_run)(model, settings[number], *splits[split], measure) for number, split in jobs
    )
    for (number, split), (score, elapsed) in zip(jobs, runs, strict=True):
        scores[number, split] = score
        seconds[number] += elapsed
        if journal is not None:
            journal.add(settings[number], split, score, elapsed)
        done += 1
        if progress is not None:
            progress(done, total)
    return tuple(
        Trial(dict(setting), tuple(map(float, row)), float(spent))
        for setting, row, spent in zip(settings, scores, seconds, strict=True)
    )


def _rescaled_parameter(parameters: Mapping[str, Any], name: str, growth: float) -> int:
    value = parameters.get(name)
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise InvalidInputError(f"only whole numbers of the grid can be rescaled, but {name} is {value!r}")
    return math.floor(value * growth + 0.5)


def _as_dicts(grid: Grid) -> list[dict[str, list[Any]]]:
    parts = [grid] if isinstance(grid, Mapping) else list(grid)
    return [{name: list(values) for name, values in part.items()} for part in parts]


def _with_parameters(model: CrossModalModel, parameters: Mapping[str, Any]) -> CrossModalModel:
    changed: CrossModalModel = clone(model).set_params(**parameters)
    return changed


def _run(
    model: CrossModalModel, parameters: Mapping[str, Any], train: Pairs, held_out: Pairs | Retrieval, measure: Measure
) -> tuple[float, float]:
    start = time.perf_counter()
    fitted = _with_parameters(model, parameters).fit(*train.aligned())
    retrieval = Retrieval(held_out, held_out) if isinstance(held_out, Pairs) else held_out
    return evaluate_retrieval(fitted, retrieval, [measure]).average(measure), time.perf_counter() - start
