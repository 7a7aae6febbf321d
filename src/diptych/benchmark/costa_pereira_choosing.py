"""What is chosen on the validation part of Costa Pereira et al. (2014)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from diptych.benchmark.costa_pereira_spaces import CorrelatedPairs, encoded_by
from diptych.data import DatasetSplits, Pairs
from diptych.metrics import AP
from diptych.models import CrossModalModel, Preprocessed
from diptych.protocols import EncodedRetrieval, HoldOut, tune

# Raw, ℓ2 or square-rooted rows; the paper does not say how features enter the linear methods.
_SCALINGS = (("none", "none"), ("l2", "l2"), ("hellinger", "hellinger"))
STRENGTHS = tuple(10.0**power for power in range(-1, 5))
"""Values of C of the classifiers."""


@dataclass(frozen=True)
class TunedMethod:
    """A method in its best setting: the validation part in its space, and the same fitted on all training pairs."""

    setting: str
    encoded: EncodedRetrieval
    model: CrossModalModel


@dataclass(frozen=True)
class KernelChoice:
    """The best KCCA subspace on the validation part, with the strength of classifiers in it, None for CM.

    ``growth`` is how many times more pairs the fit in the end has: Costa Pereira et al. multiply the components by it.
    """

    kappa: float
    n_components: int
    C: float | None
    encoded: EncodedRetrieval
    growth: float

    @property
    def average(self) -> float:
        """MAP on the validation part, the mean of both directions."""
        return self.encoded.evaluate([AP()]).average(AP())

    @property
    def grown(self) -> int:
        """The components of the fit on all training pairs."""
        return math.floor(self.n_components * self.growth + 0.5)

    @property
    def setting(self) -> str:
        """What was chosen, in words."""
        strength = "" if self.C is None else f", C={self.C:g}"
        return f"kappa={self.kappa:g}, n_components={self.n_components} (refit: {self.grown}){strength}"


def tuned(
    model: CrossModalModel,
    grid: Mapping[str, Sequence[Any]],
    splits: DatasetSplits,
    protocol: HoldOut,
    *,
    n_jobs: int = 1,
) -> TunedMethod:
    """Choose the scaling of rows and the parameters of ``grid`` on the validation part of the training pairs."""
    inner = {f"model__{name}": values for name, values in grid.items()}
    grids = [{"images": [images], "texts": [texts], **inner} for images, texts in _SCALINGS]
    tuning = tune(Preprocessed(model=model), splits.train, grids, protocol, n_jobs=n_jobs)
    train, validation = validation_split(splits.train, protocol)
    again: CrossModalModel = clone(tuning.model).fit(*train.aligned())
    chosen = tuning.best.parameters
    values = [f"{name.removeprefix('model__')}={value:g}" for name, value in chosen.items() if name in inner]
    return TunedMethod(", ".join([*values, f"{chosen['images']} rows"]), encoded_by(again, validation), tuning.model)


def validation_split(train: Pairs, protocol: HoldOut) -> tuple[Pairs, Pairs]:
    """Return what is fitted and what is asked while choosing."""
    return next(iter(protocol.splits(train)))


def kernel_choices(
    splits: DatasetSplits, protocol: HoldOut, kappas: Sequence[float], components: Sequence[int]
) -> tuple[KernelChoice, KernelChoice]:
    """Return the best CM and the best SCM on KCCA, by their average MAP on the validation part."""
    train, validation = validation_split(splits.train, protocol)
    growth = splits.train.n_images / train.n_images
    matching: list[KernelChoice] = []
    semantic: list[KernelChoice] = []
    for kappa, n_components, points in _subspaces(train, validation, kappas, components):
        matching.append(KernelChoice(kappa, n_components, None, points.correlation_matching(), growth))
        semantic += [
            KernelChoice(kappa, n_components, C, points.semantic_correlation_matching(C), growth) for C in STRENGTHS
        ]
    return max(matching, key=_average), max(semantic, key=_average)


def refitted(choices: Mapping[str, KernelChoice], splits: DatasetSplits) -> dict[str, EncodedRetrieval]:
    """Return the test part in the spaces that were chosen, fitted on all training pairs."""
    encoded: dict[str, EncodedRetrieval] = {}
    for kappa in {choice.kappa for choice in choices.values()}:
        alike = {name: choice for name, choice in choices.items() if choice.kappa == kappa}
        most = max(choice.grown for choice in alike.values())
        points = CorrelatedPairs.learn(splits.train, splits.test, n_components=most, kappa=kappa)
        for name, choice in alike.items():
            narrow = points.first(choice.grown)
            encoded[name] = (
                narrow.correlation_matching() if choice.C is None else narrow.semantic_correlation_matching(choice.C)
            )
    return encoded


def _subspaces(
    train: Pairs, validation: Pairs, kappas: Sequence[float], components: Sequence[int]
) -> Iterator[tuple[float, int, CorrelatedPairs]]:
    for kappa in kappas:
        points = CorrelatedPairs.learn(train, validation, n_components=max(components), kappa=kappa)
        width = np.shape(points.asked.images)[1]
        for n_components in sorted({min(wanted, width) for wanted in components}):
            yield kappa, n_components, points.first(n_components)


def _average(choice: KernelChoice) -> float:
    return choice.average
