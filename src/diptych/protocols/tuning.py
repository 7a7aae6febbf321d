"""Choosing parameters on training data alone, by holding out random pairs, queries or whole classes."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from typing import Any, Protocol

import numpy as np
from joblib import delayed

from diptych.data import Pairs
from diptych.errors import InvalidInputError
from diptych.estimators import clone
from diptych.metrics import AP, Measure
from diptych.models import CrossModalModel
from diptych.protocols.journal import Journal, Progress, pairs_digest, run_noted, source_digest
from diptych.protocols.retrieval import Retrieval, evaluate_retrieval

_QUERIES = 0.5
# Everything that a score depends on.
_SOURCES = ("arrays.py", "space.py", "data", "metrics", "models", "protocols")


def class_list(pairs: Pairs) -> tuple[str, ...]:
    """Return the names of the classes that occur, in the order of tables.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import class_list
    >>> class_list(Pairs(np.eye(3), np.eye(3), labels=[2, 0, 2], class_names=["cat", "dog", "emu"]))
    ('cat', 'emu')
    """
    if pairs.labels is None:
        raise InvalidInputError("these pairs have no labels, so they have no classes to divide")
    if pairs.is_multi_label:
        occurs = np.flatnonzero(pairs.labels.any(axis=0))
        return tuple(pairs.class_names[column] for column in occurs)
    present = np.unique(pairs.labels)
    if pairs.labels.dtype.kind == "U":
        return tuple(name for name in pairs.class_names if name in set(present.tolist()))
    return tuple(pairs.class_name(value) for value in present)


class HoldOuts(Protocol):
    """A way of holding out parts of the training pairs; its repr says everything that decides the draws."""

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]] | Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, held out): pairs that ask for one another, or queries with a gallery of their own."""


def numbered_seed(seed: int, number: int) -> int:
    """Return the seed of one of several draws, which depends on no other draw."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


@dataclass(frozen=True)
class _Repeated:
    repeats: int = 5
    share: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InvalidInputError(f"repeats must be at least 1, got {self.repeats}")
        if not 0 < self.share < 1:
            raise InvalidInputError(f"share must lie between 0 and 1, got {self.share}")

    def _seeds(self) -> Iterator[int]:
        return (numbered_seed(self.seed, repetition) for repetition in range(self.repeats))


@dataclass(frozen=True)
class HoldOut(_Repeated):
    """Hold out a random share of the training pairs, several times, with new random draws.

    The default is the protocol of Menon et al. (2015), section 7.4: a random 25 % held out, 5 times. With one
    repetition and 20 % it is that of Costa Pereira et al. (2014).

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import HoldOut
    >>> pairs = Pairs(np.eye(8), np.eye(8))
    >>> [(train.n_images, held_out.n_images) for train, held_out in HoldOut(repeats=2).splits(pairs)]
    [(6, 2), (6, 2)]
    """

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield (train, held out), each drawn anew from the seed and the repetition's number."""
        for seed in self._seeds():
            yield pairs.split(self.share, seed=seed)


@dataclass(frozen=True)
class CrossValidation:
    """Divide the training pairs into ``repeats`` parts of one size and hold out each of them once.

    Zhang et al. (2017) choose all parameters by five parts.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import CrossValidation
    >>> pairs = Pairs(np.eye(10), np.eye(10))
    >>> [(train.n_images, held_out.n_images) for train, held_out in CrossValidation().splits(pairs)]
    [(8, 2), (8, 2), (8, 2), (8, 2), (8, 2)]
    """

    repeats: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats < 2:
            raise InvalidInputError(f"repeats must be at least 2, got {self.repeats}")

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield (train, held out); every pair is held out once."""
        order = np.random.default_rng(self.seed).permutation(pairs.n_images)
        for part in np.array_split(order, self.repeats):
            held_out = np.isin(np.arange(pairs.n_images), part)
            yield pairs.select(~held_out), pairs.select(held_out)


@dataclass(frozen=True)
class QueryHoldOut(_Repeated):
    """Hold out a random share of the pairs as queries; the others are learned from and searched.

    This is non-extendable retrieval in small: there the gallery is the training data itself, so that a method that
    memorises it is judged in tuning as it will be judged in the end.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import QueryHoldOut
    >>> train, retrieval = next(QueryHoldOut().splits(Pairs(np.eye(8), np.eye(8))))
    >>> retrieval.queries.n_images, retrieval.gallery is train
    (2, True)
    """

    repeats: int = 3

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, queries against train), drawn as `HoldOut` draws."""
        for seed in self._seeds():
            train, held_out = pairs.split(self.share, seed=seed)
            yield train, Retrieval(held_out, train)


@dataclass(frozen=True)
class ClassHoldOut(_Repeated):
    """Hold out all pairs of a random share of the classes, several times, and never the same classes twice.

    What is learned is then asked for classes it never saw, as in the extendable protocol of Liu et al., and parameters
    that only memorise the training classes lose. At least two classes are held out, because with one every answer is
    right, and at least two are learned from. Where there are fewer sets of classes than ``repeats``, each is held out
    once and a warning says how many there are. ``fold`` sets the draws of several folds apart.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import ClassHoldOut
    >>> pairs = Pairs(np.eye(10), np.eye(10), labels=np.repeat(np.arange(5), 2))
    >>> train, held_out = next(ClassHoldOut(share=0.4).splits(pairs))
    >>> train.n_images, held_out.n_images, set(train.labels) & set(held_out.labels)
    (6, 4, set())
    """

    share: float = 0.2
    fold: int = 0

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Pairs]]:
        """Yield (train, held out), the sets of classes drawn without replacement from the seed and the fold."""
        classes = () if pairs.labels is None else class_list(pairs)
        if len(classes) < 4:
            raise InvalidInputError(
                "holding out classes needs labels of at least 4 classes, two to learn and two to ask for; "
                "use HoldOut for pairs without them"
            )
        for chosen in self._class_sets(len(classes)):
            parts = pairs.split_classes([classes[number] for number in chosen])
            yield parts.second, parts.first

    def _class_sets(self, n_classes: int) -> list[tuple[int, ...]]:
        size = min(max(round(self.share * n_classes), 2), n_classes - 2)
        possible = math.comb(n_classes, size)
        if possible < self.repeats:
            warnings.warn(
                f"{size} of {n_classes} classes can be held out in {possible} ways, so {possible} hold-outs are made "
                f"and not repeats={self.repeats}",
                stacklevel=3,
            )
        rng = np.random.default_rng([self.seed, self.fold])
        drawn: dict[tuple[int, ...], None] = {}
        while len(drawn) < min(self.repeats, possible):
            drawn[tuple(sorted(rng.permutation(n_classes)[:size].tolist()))] = None
        return list(drawn)


@dataclass(frozen=True)
class ClassQueryHoldOut(_Repeated):
    """Hold out all pairs of a share of the classes; half of them ask for the other half.

    This is extendable retrieval in small: the classes asked for were not learned, and no query finds its own partner.
    Which share the paper tunes on, if any, is not said; ours is a fifth, and at least two classes, because with one
    every answer is right. The classes are drawn as `ClassHoldOut` draws them.

    >>> import numpy as np
    >>> from diptych.data import Pairs
    >>> from diptych.protocols import ClassQueryHoldOut
    >>> pairs = Pairs(np.eye(20), np.eye(20), labels=np.repeat(np.arange(5), 4))
    >>> train, retrieval = next(ClassQueryHoldOut().splits(pairs))
    >>> train.n_images, retrieval.queries.n_images, retrieval.gallery.n_images
    (12, 4, 4)
    """

    repeats: int = 3
    share: float = 0.2
    fold: int = 0

    def splits(self, pairs: Pairs) -> Iterator[tuple[Pairs, Retrieval]]:
        """Yield (train, held-out queries against held-out database)."""
        of_fold = numbered_seed(self.seed, self.fold)
        drawn = ClassHoldOut(self.repeats, self.share, self.seed, self.fold).splits(pairs)
        for repetition, (train, held_out) in enumerate(drawn):
            seed, stratify = numbered_seed(of_fold, repetition), not held_out.is_multi_label
            database, queries = held_out.split(_QUERIES, seed=seed, stratify=stratify)
            yield train, Retrieval(queries, database)


Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]


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
    more: Mapping[str, Any] | None = None,
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
    more :
        What every fit is given beside the pairs, such as ``more_images``; a journal does not know it.

    Examples
    --------
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
        (_fit_key(setting, number), delayed(_run)(model, setting, *split, measure, more or {}))
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
    fitted = _with_parameters(model, parameters).fit(*pairs.aligned(), **(more or {}))
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
    model: CrossModalModel,
    parameters: Mapping[str, Any],
    train: Pairs,
    held_out: Pairs | Retrieval,
    measure: Measure,
    more: Mapping[str, Any],
) -> tuple[float, float]:
    start = time.perf_counter()
    fitted = _with_parameters(model, parameters).fit(*train.aligned(), **more)
    retrieval = Retrieval(held_out, held_out) if isinstance(held_out, Pairs) else held_out
    return evaluate_retrieval(fitted, retrieval, [measure]).average(measure), time.perf_counter() - start
