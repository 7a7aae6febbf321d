"""Discrete cross-modal hashing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.models.base import Grid, Need
from diptych.models.hashing._solvers import ScaledViews
from diptych.models.hashing.hashing_model import LinearHashingModel
from diptych.models.labels import Targets, weighted_sums
from diptych.models.moments import moments
from diptych.models.parameters import Count, NonNegative, Positive

_ROUNDING = 1e-5


@dataclass(kw_only=True, eq=False, repr=False)
class DCH(LinearHashingModel):
    """Discrete cross-modal hashing: codes that a linear classifier reads, found bit by bit without relaxing the sign.

        min over B ∈ {−1, 1}, W, P of  ‖L − BW‖² + λ‖W‖² + ν(‖B − XP₁‖² + ‖B − YP₂‖²)

    W and P are ridge regressions. With these fixed, bit k of every row has the closed form
    sgn([LWᵀ + ν(XP₁ + YP₂)]_k − B_{−k}W_{−k}w_kᵀ), and the bits are visited in turn until none changes. Time and memory
    are linear in the number of pairs. The features are centred and scaled to rows of mean square length one.

    With ν near zero, as the authors use it, codes follow labels alone: rows with the same labels share a code, and
    generalisation rests on the projections.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    classifier_ridge : float
        λ.
    projection_ridge : float
        Ridge of P, for each row of the data.
    nu : float
        How much the codes must be predictable from the features.
    max_iter : int
        Rounds of W, P and B.
    sweeps : int
        Most visits of all bits in one round.
    random_state : int
        Of the first codes.

    Attributes
    ----------
    changed_ : array
        Share of bits that each round turned.

    References
    ----------
    Xu, Shen, Yang, Shen and Li, "Learning discriminative binary codes for large-scale cross-modal retrieval", TIP 2017.
    The defaults are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import DCH
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(4, size=300)
    >>> images, texts = rng.normal(size=(4, 20))[labels], rng.normal(size=(4, 15))[labels]
    >>> images, texts = images + 0.1 * rng.normal(size=images.shape), texts + 0.1 * rng.normal(size=texts.shape)
    >>> model = DCH(n_bits=16).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.95)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Codes from labels, learned as bits from the start, in linear time."
    grid: ClassVar[Grid] = {"projection_ridge": [0.001, 0.01, 0.1]}

    classifier_ridge: Positive = 1.0
    projection_ridge: Positive = 0.01
    nu: NonNegative = 0.001
    max_iter: Count = 10
    sweeps: Count = 5

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        views = ScaledViews.of(moments(images, texts))
        self.image_mean_, self.text_mean_ = views.sums.image_mean, views.sums.text_mean
        solvers = [
            scipy.linalg.cho_factor(part + self.projection_ridge * np.eye(len(part)))
            for part in (views.image, views.text)
        ]
        labels = targets.indicator.astype(np.float32)
        rng = np.random.default_rng(self.random_state)
        codes = np.where(rng.random((len(labels), self.n_bits)) < 0.5, -1, 1).astype(np.float32)
        changed: list[float] = []
        for _ in range(self.max_iter):
            classifier = self._classifier(codes, labels)
            self._project(images, texts, codes, views, solvers)
            pull = labels @ classifier.T
            if self.nu > 0:
                pull += np.float32(self.nu) * (self._decide("image", images) + self._decide("text", texts))
            changed.append(descend(codes, pull, classifier, self.sweeps))
            if changed[-1] == 0:
                break
        self._project(images, texts, codes, views, solvers)
        self.changed_ = np.array(changed)

    def _classifier(self, codes: FloatArray, labels: FloatArray) -> FloatArray:
        gram = (codes.T @ codes).astype(np.float64) + self.classifier_ridge * np.eye(self.n_bits)
        return np.linalg.solve(gram, (codes.T @ labels).astype(np.float64)).astype(np.float32)

    def _project(
        self, images: FloatArray, texts: FloatArray, codes: FloatArray, views: ScaledViews, solvers: list[object]
    ) -> None:
        # Centred, so that a bit that is the same in all rows is predicted by nothing and not by rounding.
        codes = codes - codes.mean(axis=0)
        image_sums = weighted_sums(images, self.image_mean_, codes).T / views.image_scale / len(codes)
        text_sums = weighted_sums(texts, self.text_mean_, codes).T / views.text_scale / len(codes)
        self.image_projection_ = scipy.linalg.cho_solve(solvers[0], image_sums) / views.image_scale
        self.text_projection_ = scipy.linalg.cho_solve(solvers[1], text_sums) / views.text_scale


def descend(codes: FloatArray, pull: FloatArray, classifier: FloatArray, sweeps: int) -> float:
    """Improve ``codes`` in place by discrete cyclic coordinate descent; return the share of bits that changed.

    Minimises ‖BW‖² − 2⟨B, pull⟩ over B ∈ {−1, 1}, one column of bits after the other. Where both signs are equally good
    up to rounding, a bit stays as it is.
    """
    start = codes.copy()
    gram = classifier @ classifier.T
    indifferent = _ROUNDING * (np.abs(pull).max(axis=0) + np.abs(gram).sum(axis=1))
    for _ in range(sweeps):
        turned = False
        for bit in range(codes.shape[1]):
            others = gram[bit].copy()
            others[bit] = 0
            slope = pull[:, bit] - codes @ others
            turn = (slope * codes[:, bit]) < -indifferent[bit]
            codes[turn, bit] *= -1
            turned = turned or bool(turn.any())
        if not turned:
            break
    return float((codes != start).mean())
