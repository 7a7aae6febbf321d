"""Scores of all products of two features, learned by which pairs belong together or by which rank first."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.base import Grid, Variants
from diptych.models.labels import Targets
from diptych.models.pairwise._bilinear import CrossProductModel, Instances, fit_least_squares
from diptych.models.pairwise._pairs import (
    AllPairs,
    PairLoss,
    PairTerm,
    SampledPairs,
    classification_loss,
    matched_pairs,
    ranking_loss,
)


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

    def __init__(
        self,
        *,
        C: float | None = None,
        ratio: int | None = 10,
        loss: PairLoss = "logistic",
        feature_share: float = 1.0,
        reweight: bool = False,
        center: bool = True,
        fit_intercept: bool = True,
        instances: Instances = "pairs",
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.ratio = ratio
        self.loss = loss
        self.feature_share = feature_share
        self.reweight = reweight
        self.center = center
        self.fit_intercept = fit_intercept
        self.instances = instances
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

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

    def __init__(
        self,
        *,
        C: float | None = None,
        ratio: int | None = 10,
        symmetric: bool = False,
        feature_share: float = 1.0,
        center: bool = True,
        instances: Instances = "pairs",
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.ratio = ratio
        self.symmetric = symmetric
        self.feature_share = feature_share
        self.center = center
        self.instances = instances
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

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
