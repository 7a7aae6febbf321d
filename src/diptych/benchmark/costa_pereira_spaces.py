"""The three spaces of Costa Pereira et al. (2014), with every number of kernel components from one fit.

The components of KCCA come one after another: those of a smaller number are the first of a larger one. So the kernel
problem, which takes nearly all the time, is solved once for all numbers and for CM and SCM alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.data import Pairs
from diptych.models import KCCA, SM, CrossModalModel
from diptych.protocols import EncodedRetrieval, Retrieval
from diptych.space import Direction, Space

# NCc, the normalised correlation of centred points, which the paper settles on for all three spaces.
METRIC = "pearson"


@dataclass(frozen=True)
class CorrelatedPairs:
    """Training pairs and asked pairs as points of a KCCA subspace."""

    train: Pairs
    asked: Pairs

    @classmethod
    def learn(cls, train: Pairs, asked: Pairs, *, n_components: int, kappa: float) -> CorrelatedPairs:
        """Fit KCCA on ``train``."""
        model = KCCA(n_components=n_components, kappa=kappa, metric=METRIC).fit(*train.aligned())
        return cls(_as_points(model, train), _as_points(model, asked))

    def first(self, n_components: int) -> CorrelatedPairs:
        """Return the subspace of the first components."""
        return CorrelatedPairs(_narrowed(self.train, n_components), _narrowed(self.asked, n_components))

    def correlation_matching(self) -> EncodedRetrieval:
        """Return the asked pairs in the subspace itself: CM."""
        asked = self.asked
        points: dict[Direction, AnyArray] = {
            "image_query": np.asarray(asked.images),
            "text_query": np.asarray(asked.texts),
        }
        truth: dict[Direction, AnyArray] = {
            "image_query": np.asarray(asked.labels),
            "text_query": np.asarray(asked.text_labels),
        }
        return EncodedRetrieval(Space(METRIC), points, points, truth, truth)

    def semantic_correlation_matching(self, C: float) -> EncodedRetrieval:
        """Return the asked pairs as class probabilities learned from points of the subspace: SCM."""
        return encoded_by(SM(C=C, metric=METRIC).fit(*self.train.aligned()), self.asked)


def encoded_by(model: CrossModalModel, asked: Pairs) -> EncodedRetrieval:
    """Return the asked pairs as points of a fitted model, everything searched by everything."""
    return EncodedRetrieval.of(model, Retrieval(asked, asked))


def _as_points(model: CrossModalModel, pairs: Pairs) -> Pairs:
    return pairs.with_features(images=model.encode_images(pairs.images), texts=model.encode_texts(pairs.texts))


def _narrowed(pairs: Pairs, n_components: int) -> Pairs:
    images: FloatArray = np.asarray(pairs.images)[:, :n_components]
    texts: FloatArray = np.asarray(pairs.texts)[:, :n_components]
    return pairs.with_features(images=images, texts=texts)
