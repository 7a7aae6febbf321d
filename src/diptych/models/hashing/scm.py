"""Semantic correlation maximisation: all bits at once, or one after another."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diptych.arrays import FloatArray, row_blocks
from diptych.models.base import Grid, Need, Variants
from diptych.models.hashing._solvers import (
    WhitenedPair,
    factored_svd,
    mixed_directions,
    random_complement,
    semantic_factors,
)
from diptych.models.hashing.hashing_model import LinearHashingModel
from diptych.models.labels import Targets
from diptych.models.linear import centre, fix_signs
from diptych.models.moments import LabelView, MomentModel, Moments, moments
from diptych.models.parameters import Count, NonNegative, check_components

Fill = Literal["null", "mixtures"]

_NOISE = 1e-9


@dataclass(kw_only=True, eq=False, repr=False)
class SCMOrth(MomentModel, LinearHashingModel):
    """Semantic correlation maximisation, orthogonal form: canonical directions of label similarity.

        min over W, V of  ‖sgn(XW) sgn(YV)ᵀ − qS‖²,   S = cosine of labels in [−1, 1]
        relaxed to  max tr(WᵀXᵀSYV)   with WᵀXᵀXW = VᵀYᵀYV = nI

    XᵀSY has at most as many directions as there are classes, and one less when every row has one label. Bits beyond
    that are noise in the published method: they make codes longer and search *worse*, which is why its printed results
    fall with the number of bits. ``fill="null"`` is the published method, with a warning; the default does better.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    regularization : float
        Ridge relative to the mean variance of a feature.
    fill : {"null", "mixtures"}
        What bits beyond the rank are: directions from the null space, as in the published method (drawn by the seed, so
        that they are the same everywhere), or random mixtures of the good ones, which is ours.
    n_directions : int or None
        Directions that have a bit of their own where ``fill`` is ``"mixtures"``; None gives one to each. Late
        directions carry little, and a mixture of all of them is worth more than one of them alone. Ours too.
    random_state : int
        Of these directions.

    Attributes
    ----------
    rank_ : int
        Bits that carry label similarity.
    singular_values_ : array
        How much each of them does.

    References
    ----------
    Zhang and Li, "Large-scale supervised multimodal hashing with semantic correlation maximization", AAAI 2014. Its
    demonstration program centres training rows and queries but not the database; here all share the training mean.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import SCMOrth
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(4, size=300)
    >>> images, texts = rng.normal(size=(4, 20))[labels], rng.normal(size=(4, 15))[labels]
    >>> images, texts = images + 0.1 * rng.normal(size=images.shape), texts + 0.1 * rng.normal(size=texts.shape)
    >>> model = SCMOrth(n_bits=16).fit(images, texts, labels)
    >>> model.rank_
    3
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Codes from labels in closed form, best with fewer bits than classes; else SCMSeq."
    title: ClassVar[str] = "SCM-orth"
    grid: ClassVar[Grid] = {"regularization": [0.1, 1.0, 10.0]}
    # As published, with noise in the bits beyond its rank, and with what we put there.
    variants: ClassVar[Variants] = {"SCM-orth": {"fill": "null"}, "SCM-orth mixed": {"fill": "mixtures"}}
    command_name: ClassVar[str] = "scm-orth"
    label_view: ClassVar[LabelView] = "unit"

    regularization: NonNegative = 1.0
    fill: Fill = "mixtures"
    n_directions: Count | None = 4

    def _fit_moments(self, sums: Moments) -> None:
        pair = WhitenedPair.of(sums, self.regularization)
        factors = semantic_factors(sums)
        left, values, right = factored_svd(pair.image.T @ factors[0], pair.text.T @ factors[1])
        self.rank_ = max(1, int((values > _NOISE * values.max(initial=0.0)).sum()))
        self.singular_values_ = values[: self.rank_]
        left, right = self._filled(pair, left[:, : self.rank_], right[:, : self.rank_])
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_projection_, self.text_projection_ = fix_signs(left, right)

    def _filled(self, pair: WhitenedPair, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return as many directions of each side as there are bits, from those found in whitened coordinates."""
        if self.fill == "mixtures":
            kept = check_components(self.n_directions, self.rank_, name="n_directions")
            found = pair.image @ left, pair.text @ right
            return mixed_directions(*found, self.singular_values_, self.n_bits, self.random_state, kept)
        missing = self.n_bits - self.rank_
        if missing <= 0:
            return pair.image @ left[:, : self.n_bits], pair.text @ right[:, : self.n_bits]
        warnings.warn(
            f"the labels give {self.rank_} directions, so that {missing} of {self.n_bits} bits are noise; use fewer "
            "bits, fill='mixtures' or SCMSeq",
            stacklevel=6,
        )
        return (
            pair.image @ np.hstack([left, random_complement(left, missing, self.random_state)]),
            pair.text @ np.hstack([right, random_complement(right, missing, self.random_state + 1)]),
        )


OnIncrease = Literal["cca", "continue"]


@dataclass(kw_only=True, eq=False, repr=False)
class SCMSeq(LinearHashingModel):
    """Semantic correlation maximisation, sequential form: each bit explains what the bits before it left over.

        bit t:  max over w, v of  wᵀXᵀR_tYv   with wᵀXᵀXw = vᵀYᵀYv = n
        R_t = qS − Σ_{k<t} sgn(Xw_k) sgn(Yv_k)ᵀ,   S = cosine of labels in [−1, 1]

    The residual enters through XᵀR_tY alone, which has rank (classes + t): it is kept as two thin factors, each bit is
    the leading pair of a matrix of that rank, and nothing of size n × n or even d × d is formed for it. Because the
    residual is taken after the sign, late bits go on being useful where those of `SCMOrth` are noise.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    regularization : float
        Ridge relative to the mean variance of a feature.
    on_increase : {"cca", "continue"}
        What happens when a bit's singular value exceeds that of the bit before, which few classes and few bits make
        likely. The authors' program stops there and gives all remaining bits canonical directions, the weakest first;
        ``"continue"`` goes on with the residual.
    random_state : int
        Of the mixtures that stand in where ``"cca"`` asks for more canonical directions than there are.

    Attributes
    ----------
    singular_values_ : array
        Leading singular value of each learned bit's residual.
    n_learned_ : int
        Bits learned before canonical directions took over.

    References
    ----------
    Zhang and Li, "Large-scale supervised multimodal hashing with semantic correlation maximization", AAAI 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import SCMSeq
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(4, size=300)
    >>> images, texts = rng.normal(size=(4, 20))[labels], rng.normal(size=(4, 15))[labels]
    >>> images, texts = images + 0.1 * rng.normal(size=images.shape), texts + 0.1 * rng.normal(size=texts.shape)
    >>> model = SCMSeq(n_bits=16).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.95)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Codes from labels, fast at any size and good at any length: try it first."
    title: ClassVar[str] = "SCM-seq"
    grid: ClassVar[Grid] = {"regularization": [0.1, 1.0, 10.0]}
    command_name: ClassVar[str] = "scm-seq"

    regularization: NonNegative = 1.0
    on_increase: OnIncrease = "cca"

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        pair = WhitenedPair.of(moments(images, texts, targets, view="unit"), self.regularization)
        self.image_mean_, self.text_mean_ = pair.sums.image_mean, pair.sums.text_mean
        factors = semantic_factors(pair.sums)
        left, right = 2 * self.n_bits * (pair.image.T @ factors[0]), pair.text.T @ factors[1]
        image_directions: list[FloatArray] = []
        text_directions: list[FloatArray] = []
        values: list[float] = []
        for _ in range(self.n_bits):
            u, singular, v = factored_svd(left, right)
            if self.on_increase == "cca" and values and singular[0] > values[-1]:
                break
            image_directions.append(pair.image @ u[:, 0])
            text_directions.append(pair.text @ v[:, 0])
            values.append(float(singular[0]))
            left = np.column_stack([left, -pair.image.T @ signed_sum(images, self.image_mean_, image_directions[-1])])
            right = np.column_stack([right, pair.text.T @ signed_sum(texts, self.text_mean_, text_directions[-1])])
        self.singular_values_, self.n_learned_ = np.array(values), len(values)
        if self.n_learned_ < self.n_bits:
            # As many canonical directions as there are bits, weakest first.
            left, strengths, right = np.linalg.svd(pair.image.T @ pair.sums.cross @ pair.text, full_matrices=False)
            found = pair.image @ left, pair.text @ right.T
            canonical = mixed_directions(*found, strengths, self.n_bits, self.random_state)
            image_directions.append(canonical[0][:, ::-1][:, self.n_learned_ :])
            text_directions.append(canonical[1][:, ::-1][:, self.n_learned_ :])
        self.image_projection_, self.text_projection_ = map(np.column_stack, (image_directions, text_directions))


def signed_sum(rows: FloatArray, mean: FloatArray, direction: FloatArray) -> FloatArray:
    """Return (rows − mean)ᵀ sgn((rows − mean) @ direction) in float64, block by block."""
    total = np.zeros(rows.shape[1])
    direction = direction.astype(rows.dtype)
    for block in row_blocks(len(rows)):
        deviations = centre(rows[block], mean)
        total += np.where(deviations @ direction >= 0, 1, -1).astype(rows.dtype) @ deviations
    return total
