"""The three spaces of Costa Pereira et al. (2014), and what is chosen on their validation part.

The components of KCCA come one after another: those of a smaller number are the first of a larger one. So the kernel
problem, which takes nearly all the time, is solved once for all numbers and for CM and SCM alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.data import DatasetSplits, Pairs
from diptych.estimators import clone
from diptych.metrics import AP
from diptych.models import KCCA, SM, CrossModalModel, Preprocessed
from diptych.protocols import EncodedRetrieval, HoldOut, Retrieval, tune
from diptych.protocols.retrieval import relevance_labels
from diptych.space import Direction, Space

# NCc, the normalised correlation of centred points, which the paper settles on for all three spaces. Of probabilities
# it means something; a correlation method leaves the sign of each direction open, and the mean over the components,
# which NCc subtracts, is then whatever the signs happen to be. NC asks for no signs, and the paper finds no difference
# between the two for CM on Wikipedia.
CENTRED_CORRELATION = "pearson"
CORRELATION = "cosine"
# Raw, ℓ2 or square-rooted rows; the paper does not say how features enter the linear methods.
_SCALINGS = (("none", "none"), ("l2", "l2"), ("hellinger", "hellinger"))
STRENGTHS = tuple(10.0**power for power in range(-1, 5))
"""Values of C of the classifiers."""


@dataclass(frozen=True)
class CorrelatedPairs:
    """Training pairs and asked pairs as points of a KCCA subspace."""

    train: Pairs
    asked: Pairs

    @classmethod
    def learn(cls, train: Pairs, asked: Pairs, *, n_components: int, kappa: float) -> CorrelatedPairs:
        """Fit KCCA on ``train``."""
        model = KCCA(n_components=n_components, kappa=kappa, metric=CORRELATION).fit(*train.aligned())
        return cls(_as_points(model, train), _as_points(model, asked))

    def first(self, n_components: int) -> CorrelatedPairs:
        """Return the subspace of the first components."""
        return CorrelatedPairs(_narrowed(self.train, n_components), _narrowed(self.asked, n_components))

    def correlation_matching(self) -> EncodedRetrieval:
        """Return the asked pairs in the subspace itself: CM, by a measure that no sign of a component changes."""
        asked = self.asked
        points: dict[Direction, AnyArray] = {
            "image_query": np.asarray(asked.images),
            "text_query": np.asarray(asked.texts),
        }
        truth = relevance_labels(asked, "label")
        return EncodedRetrieval(Space(CORRELATION), points, points, truth, truth)

    def semantic_correlation_matching(self, C: float) -> EncodedRetrieval:
        """Return the asked pairs as class probabilities learned from points of the subspace: SCM."""
        return encode_pairs(SM(C=C, metric=CENTRED_CORRELATION).fit(*self.train.aligned()), self.asked)


def encode_pairs(model: CrossModalModel, asked: Pairs) -> EncodedRetrieval:
    """Return the asked pairs as points of a fitted model, everything searched by everything."""
    return EncodedRetrieval.of(model, Retrieval(asked, asked))


def _as_points(model: CrossModalModel, pairs: Pairs) -> Pairs:
    return pairs.with_features(images=model.encode_images(pairs.images), texts=model.encode_texts(pairs.texts))


def _narrowed(pairs: Pairs, n_components: int) -> Pairs:
    images: FloatArray = np.asarray(pairs.images)[:, :n_components]
    texts: FloatArray = np.asarray(pairs.texts)[:, :n_components]
    return pairs.with_features(images=images, texts=texts)


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


def tune_method(
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
    return TunedMethod(", ".join([*values, f"{chosen['images']} rows"]), encode_pairs(again, validation), tuning.model)


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


def refit_choices(choices: Mapping[str, KernelChoice], splits: DatasetSplits) -> dict[str, EncodedRetrieval]:
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
