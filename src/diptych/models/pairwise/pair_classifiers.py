"""Classifiers of pairs: linear in products of two features or in both sides, by matches or by ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.base import CrossModalModel, Grid, Side, Variants
from diptych.models.labels import Targets
from diptych.models.linear import centre, check_varies, column_means
from diptych.models.pairwise._bilinear import CrossProductModel, fit_least_squares
from diptych.models.pairwise._pairs import (
    AllPairs,
    PairLoss,
    PairTerm,
    RowLoss,
    SampledPairs,
    classification_loss,
    curvature_and_start,
    matched_pairs,
    minimise,
    ranking_loss,
)
from diptych.models.parameters import Count, Positive
from diptych.space import Space


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticCrossProduct(CrossProductModel):
    """Tells pairs that belong together from pairs that were thrown together, by a bilinear score.

        min over W, c of  (1/m) Σᵢⱼ log(1 + exp(−zᵢⱼ (aᵢᵀW bⱼ + c))) + λ/2 ‖W‖²,    zᵢⱼ = +1 if i = j, else −1,

    with λ = 1/(mC). Any picture with any other text is taken as a negative, which ranks correctly as long as the given
    pairs are a fair sample of all that match. The score aᵀWb is a linear classifier on all products a_k·b_l, yet these
    are never formed: with the derivatives R of the losses, the gradient is AᵀRB.

    Parameters
    ----------
    C : float or None
        Inverse strength of the ridge, as in scikit-learn; Menon et al. (2015) chose 1 on all three of their data sets.
        It has a unit, the inverse of both sides' squares: None is 1 for rows of unit mean square length, on any scale.
    ratio : int or None
        Unlabelled pairs for each given one (S in the paper, which chose 10), drawn at random; None takes all n² pairs.
    loss : {"logistic", "squared"}
        ``squared`` is (s − z)²; over all pairs it has a closed form and is the fast choice for large data.
    feature_share : float
        Share of the products a_k·b_l that may have a weight, drawn at random (section 9.3 of the paper).
    reweight : bool
        Count each sampled pair (n − 1)/ratio times, as if all pairs were there. The paper does not.
    center : bool
        Subtract the training means first.
    fit_intercept : bool
        Fit c, which changes no ranking but spares W from carrying how rare given pairs are.
    instances : {"pairs", "rows"}
        What m in λ = 1/(mC) counts: the pairs trained on, or the rows. The paper's n leaves it open.
    max_iter, tol : int, float
        Of the optimiser, preconditioned L-BFGS; ``tol`` is relative to the gradient at the start.
    random_state : int
        Of the sampled pairs and features.

    Attributes
    ----------
    W_ : array
        The matrix of the score; ``rank_`` is its numerical rank, ``strongest_pairs`` reads it.

    References
    ----------
    Menon, Surian and Chawla, "Cross-modal retrieval: a pairwise classification approach", SDM 2015, section 4.2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import LogisticCrossProduct
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(200, 3))
    >>> images = np.hstack([2 * texts[:, :1], rng.normal(size=(200, 4))])
    >>> model = LogisticCrossProduct().fit(images, texts)
    >>> model.strongest_pairs(1, text_names=["colour", "length", "tone"])[0][:2]
    (0, 'colour')
    """

    when_to_use: ClassVar[str] = "Pairs without labels, when single features of the two sides go together."
    title: ClassVar[str] = "logistic cross-product"
    grid: ClassVar[Grid] = {"C": [0.1, 10.0]}
    variants: ClassVar[Variants] = {"logistic cross-product": {"C": 1.0, "ratio": 5}}

    loss: PairLoss = "logistic"
    reweight: bool = False
    fit_intercept: bool = True

    def _solve(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> tuple[FloatArray, float]:
        n_rows = len(images)
        pairs, signs = matched_pairs(n_rows, self.ratio, self.random_state)
        if self.ratio is None:
            if self.loss == "squared" and self.feature_share == 1:
                return self._solve_closed_form(images, texts)
            return self._classify(images, texts, PairTerm(pairs, classification_loss(self.loss, signs)), 1 / n_rows)
        weight = (n_rows - 1) / self.ratio if self.reweight else 1.0
        weights = np.where(np.arange(self.ratio + 1) == 0, 1.0, weight)
        term = PairTerm(pairs, classification_loss(self.loss, signs, weights))
        return self._classify(images, texts, term, 1 / float(weights.sum()))

    def _solve_closed_form(self, images: FloatArray, texts: FloatArray) -> tuple[FloatArray, float]:
        def moment(image_rows: FloatArray, text_rows: FloatArray) -> FloatArray:
            totals = np.outer(image_rows.sum(axis=0, dtype=np.float64), text_rows.sum(axis=0, dtype=np.float64))
            return np.asarray(2 * (image_rows.T @ text_rows) - totals)

        n_rows = len(images)
        mean_sign = 2 / n_rows - 1 if self.fit_intercept else None
        ridge = self._ridge(images, texts, n_rows**2)
        return fit_least_squares(images, texts, moment, ridge=ridge, mean_sign=mean_sign)


@dataclass(kw_only=True, eq=False, repr=False)
class BipartiteCrossProduct(CrossProductModel):
    """Learns to score each picture's own text above other texts, by a bilinear score.

        min over W of  (1/m) Σᵢ Σ_{j≠i} log(1 + exp(−(aᵢᵀW bᵢ − aᵢᵀW bⱼ))) + λ/2 ‖W‖²,    λ = 1/(mC).

    Unlike `LogisticCrossProduct` it does not claim that an unlabelled pair is wrong, only that the given one should
    come first. The paper prints the loss with the label of the unlabelled pair, −1, which would push the given pairs
    down; this is the form its text describes. With Pᵢⱼ = σ(sᵢⱼ − sᵢᵢ) and D = diag(P1) the gradient is −Aᵀ(D − P)B.

    Parameters
    ----------
    C : float or None
        Inverse strength of the ridge; Menon et al. (2015) chose 0.1 on Wikipedia and 1 on Pascal and TVGraz. None as in
        `LogisticCrossProduct`.
    ratio : int or None
        Other texts for each picture (S in the paper: 10, 5 and 10), drawn at random; None takes all n − 1.
    symmetric : bool
        Also score each text's own picture above other pictures. The paper varies the text alone.
    feature_share, center, instances, max_iter, tol, random_state
        As in `LogisticCrossProduct`.

    Attributes
    ----------
    W_ : array
        The matrix of the score; ``rank_`` is its numerical rank, ``strongest_pairs`` reads it.

    References
    ----------
    Menon, Surian and Chawla, "Cross-modal retrieval: a pairwise classification approach", SDM 2015, section 4.2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import BipartiteCrossProduct
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(100, 3))
    >>> images = texts @ rng.normal(size=(3, 5)) + 0.1 * rng.normal(size=(100, 5))
    >>> model = BipartiteCrossProduct(C=10.0).fit(images[:60], texts[:60])
    >>> model.rank_
    3
    >>> bool(model.score(images[60:], texts[60:]) > 0.2)
    True
    """

    when_to_use: ClassVar[str] = "Pairs without labels, when many other texts would suit a picture as well."
    title: ClassVar[str] = "bipartite cross-product"
    grid: ClassVar[Grid] = {"C": [0.1, 10.0]}
    variants: ClassVar[Variants] = {"bipartite cross-product": {"C": 1.0, "ratio": 5}}

    symmetric: bool = False

    def _solve(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> tuple[FloatArray, float]:
        rng = np.random.default_rng(self.random_state)
        sides = (False, True) if self.symmetric else (False,)
        terms = [self._term(len(images), rng, swapped=swapped) for swapped in sides]
        # The second derivative at zero is 1/4, and a difference of two texts has twice the energy of one.
        return self._minimise(images, texts, terms, curvature=0.5)

    def _term(self, n_rows: int, rng: np.random.Generator, *, swapped: bool) -> PairTerm:
        if self.ratio is None:
            return PairTerm(AllPairs(n_rows), ranking_loss(lambda rows: np.arange(rows.start, rows.stop)), swapped)
        first = ranking_loss(lambda rows: np.zeros(rows.stop - rows.start, dtype=np.intp))
        return PairTerm(SampledPairs.unlabelled(n_rows, self.ratio, rng), first, swapped)


@dataclass(kw_only=True, eq=False, repr=False)
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
    # The points are (wᵀa, 1) and (1, vᵀb), whose inner product is the sum of both sides.
    space = Space("dot")

    C: Positive = 1.0
    ratio: Count | None = 10
    max_iter: Count = 1000
    tol: Positive = 1e-4
    random_state: int = 0

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
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

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        mean, weights = self._of_side(side, "mean", "weights")
        scores = centre(rows, mean) @ weights.astype(rows.dtype, copy=False)
        ones = np.ones_like(scores)
        return np.stack([scores, ones] if side == "image" else [ones, scores], axis=1)


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
