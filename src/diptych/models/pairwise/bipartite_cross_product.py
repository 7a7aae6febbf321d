from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.base import Grid, Variants
from diptych.models.labels import Targets
from diptych.models.pairwise._bilinear import CrossProductModel, Instances
from diptych.models.pairwise._pairs import AllPairs, PairTerm, SampledPairs, ranking_loss


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
