from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.former_names import FORMERLY_SEED
from diptych.models.base import CrossModalModel, Grid, Variants, check_count, check_numbers
from diptych.models.labels import Targets
from diptych.models.linear import centre, check_varies, column_means
from diptych.models.pairwise._pairs import (
    AllPairs,
    RowLoss,
    SampledPairs,
    classification_loss,
    curvature_and_start,
    matched_pairs,
    minimise,
)
from diptych.space import Space


class LogisticConcatenation(CrossModalModel):
    """Tells given pairs from random ones by a score that adds up the two sides: a baseline that has to fail.

        min over w, v, c of  (1/m) Σᵢⱼ log(1 + exp(−zᵢⱼ (wᵀaᵢ + vᵀbⱼ + c))) + λ/2 (‖w‖² + ‖v‖²),    λ = 1/(mC),

    with zᵢⱼ = +1 if i = j, else −1. The best text is the one with the largest vᵀb, whatever the picture: every query
    gets the same answer. Over all pairs the optimum is even w = v = 0, with sampled pairs it is the accident of the
    sample. What it shows is that a score has to multiply the two sides, as `LogisticCrossProduct` does.

    Parameters
    ----------
    C : float
        Inverse strength of the ridge; Menon et al. (2015) chose 1e-7, 0.1 and 1e-5 on Wikipedia, Pascal and TVGraz.
    ratio : int or None
        Unlabelled pairs for each given one (S in the paper: 10, 1 and 1), drawn at random; None takes all n² pairs.
    max_iter, tol, random_state
        As in `LogisticCrossProduct`.

    References
    ----------
    Menon, Surian and Chawla, "Cross-modal retrieval: a pairwise classification approach", SDM 2015, section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import LogisticConcatenation
    >>> rng = np.random.default_rng(0)
    >>> images, texts = rng.normal(size=(50, 4)), rng.normal(size=(50, 3))
    >>> best = LogisticConcatenation().fit(images, texts).similarity(images, texts).argmax(axis=1)
    >>> bool((best == best[0]).all())
    True
    """

    when_to_use: ClassVar[str] = "Never for search: every query gets the same answer. It is the baseline of its paper."
    title: ClassVar[str] = "logistic concatenation"
    grid: ClassVar[Grid] = {"C": [1e-3, 10.0]}
    variants: ClassVar[Variants] = {"logistic concatenation": {"ratio": 1}}
    former_names = FORMERLY_SEED
    # The points are (wᵀa, 1) and (1, vᵀb), whose inner product is the sum of both sides.
    space = Space("dot")

    image_mean_: FloatArray
    text_mean_: FloatArray
    image_weights_: FloatArray
    text_weights_: FloatArray
    intercept_: float

    def __init__(
        self, *, C: float = 1.0, ratio: int | None = 10, max_iter: int = 1000, tol: float = 1e-4, random_state: int = 0
    ) -> None:
        self.C = C
        self.ratio = ratio
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        check_numbers(self, "C", "tol", low=0, open_low=True)
        check_count("max_iter", self.max_iter)
        check_varies(images=images, texts=texts)
        self.image_mean_, self.text_mean_ = column_means(images), column_means(texts)
        pairs, signs = matched_pairs(len(images), self.ratio, self.random_state)
        curvature, intercept = curvature_and_start("logistic", len(images) / pairs.count)
        image_rows, text_rows = centre(images, self.image_mean_), centre(texts, self.text_mean_)
        energies = np.concatenate([(side**2).mean(axis=0, dtype=np.float64) for side in (image_rows, text_rows)])
        ridge, loss = 1 / self.C, classification_loss("logistic", signs)
        # Features divided by the root of their expected curvature make the problem nearly round.
        scale, bias_scale = 1 / np.sqrt(curvature * energies + ridge / pairs.count), 1 / np.sqrt(curvature)

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            weights, bias = scale * flat[:-1], intercept + bias_scale * float(flat[-1])
            value, gradient, bias_gradient = evaluate_concatenation(image_rows, text_rows, weights, bias, pairs, loss)
            value += ridge / 2 * float(weights @ weights)
            gradient = scale * (gradient + ridge * weights)
            return value / pairs.count, np.append(gradient, bias_scale * bias_gradient) / pairs.count

        slope = objective(np.zeros(len(scale) + 1))[1]
        solution = minimise(objective, -slope, slope=slope, tol=self.tol, max_iter=self.max_iter, hint="lower C")
        self.intercept_ = intercept + bias_scale * float(solution[-1])
        self.image_weights_, self.text_weights_ = np.split(scale * solution[:-1], [images.shape[1]])

    def _encode_images(self, images: FloatArray) -> FloatArray:
        scores = centre(images, self.image_mean_) @ self.image_weights_.astype(images.dtype, copy=False)
        return np.stack([scores, np.ones_like(scores)], axis=1)

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        scores = centre(texts, self.text_mean_) @ self.text_weights_.astype(texts.dtype, copy=False)
        return np.stack([np.ones_like(scores), scores], axis=1)


def evaluate_concatenation(
    images: FloatArray,
    texts: FloatArray,
    weights: FloatArray,
    bias: float,
    pairs: AllPairs | SampledPairs,
    loss: RowLoss,
) -> tuple[float, FloatArray, float]:
    """Return the summed loss of all pairs under wᵀa + vᵀb + c, and its gradients in (w, v) and c."""
    width = images.shape[1]
    image_scores, text_scores = images @ weights[:width] + bias, texts @ weights[width:]
    # (s, 1)·(1, t) = s + t, and the same two columns turn the derivatives into their row and column sums.
    left = np.stack([image_scores, np.ones_like(image_scores)], axis=1)
    right = np.stack([np.ones_like(text_scores), text_scores], axis=1)
    sums = pairs.reduce(left, right, loss)
    row_totals, column_totals = sums.by_left[:, 0].astype(images.dtype), sums.by_right[:, 1].astype(texts.dtype)
    gradient = np.concatenate([images.T @ row_totals, texts.T @ column_totals])
    return sums.value, gradient, float(row_totals.sum(dtype=np.float64))
