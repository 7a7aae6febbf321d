"""Choosing parameters on training data alone."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from typing import Any

import numpy as np
from joblib import delayed

from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.metrics import AP, Measure
from diptych.models import CrossModalModel
from diptych.protocols.hold_outs import HoldOut, HoldOuts
from diptych.protocols.journal import Journal, Progress, pairs_digest, run_noted, source_digest
from diptych.protocols.retrieval import Retrieval, evaluate_retrieval

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
# Everything that a score depends on.
_SOURCES = ("arrays.py", "space.py", "data", "metrics", "models", "protocols")


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
    """Every trial of a search, and the model refitted on all training pairs with the best setting.

    ``fit_seconds`` is the processor time of that fit, which other work on the machine does not change.
    """

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
    from sklearn.model_selection import ParameterGrid

    grids = [grid] if isinstance(grid, Mapping) else grid
    settings = list(ParameterGrid([{name: list(values) for name, values in part.items()} for part in grids]))
    if not settings:
        raise InvalidInputError("the grid holds no setting to try")
    measure = AP() if measure is None else measure
    protocol = HoldOut() if protocol is None else protocol
    splits: list[tuple[Pairs, Pairs | Retrieval]] = [*protocol.splits(pairs)]
    calls = [
        (_fit_key(setting, number), delayed(_run)(model, setting, *split, measure))
        for setting in settings
        for number, split in enumerate(splits)
    ]
    journal = None if folder is None else _journal(folder, pairs, model, protocol, measure)
    fits = iter(run_noted(calls, journal, n_jobs=n_jobs, progress=progress))
    trials = tuple(_trial(setting, list(islice(fits, len(splits)))) for setting in settings)
    best = max(trials, key=lambda trial: trial.mean)
    growth = pairs.n_images / np.mean([train.n_images for train, _ in splits])
    parameters = best.parameters | {
        name: _rescaled_parameter(best.parameters, name, float(growth)) for name in rescaled
    }
    start = time.process_time()
    fitted = _with_parameters(model, parameters).fit(*pairs.aligned())
    return Tuning(trials, best, fitted, time.process_time() - start)


def _trial(setting: Mapping[str, Any], fits: Sequence[tuple[float, float]]) -> Trial:
    return Trial(dict(setting), tuple(float(score) for score, _ in fits), sum(seconds for _, seconds in fits))


def _journal(
    folder: str | PathLike[str], pairs: Pairs, model: CrossModalModel, protocol: HoldOuts, measure: Measure
) -> Journal[tuple[float, float]]:
    parameters = " ".join(f"{name}={value!r}" for name, value in sorted(model.get_params().items()))
    described = (f"{type(model).__name__} {parameters}", repr(protocol), repr(measure))
    identity = (source_digest(*_SOURCES), *described, pairs_digest(pairs))
    return Journal(folder, identity, read=lambda value: (float(value[0]), float(value[1])))


def _fit_key(setting: Mapping[str, Any], split: int) -> str:
    return json.dumps([{name: repr(value) for name, value in setting.items()}, split], sort_keys=True)


def _rescaled_parameter(parameters: Mapping[str, Any], name: str, growth: float) -> int:
    value = parameters.get(name)
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise InvalidInputError(f"only whole numbers of the grid can be rescaled, but {name} is {value!r}")
    return math.floor(value * growth + 0.5)


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
