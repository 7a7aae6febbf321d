from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.models.base import Grid, Need, Variants
from diptych.models.labels import Targets
from diptych.models.pairwise._bilinear import CrossProductModel, fit_least_squares
from diptych.models.pairwise._pairs import (
    AllPairs,
    PairLoss,
    PairTerm,
    SampledPairs,
    classification_loss,
    first_matches,
)
from diptych.models.parameters import Positive


@dataclass(frozen=True)
class LabelSets:
    """Row i has set ``set_of[i]``; sets g and h share a label where ``shares[g, h]``. Sets are few, rows many."""

    set_of: IntArray
    shares: BoolArray

    @classmethod
    def of(cls, indicator: FloatArray) -> LabelSets:
        """Group the rows of a 0/1 matrix."""
        sets, set_of = np.unique(indicator, axis=0, return_inverse=True)
        shares = sets @ sets.T > 0
        if shares.all():
            raise InvalidInputError("every two rows share a label: there is nothing to tell apart")
        return cls(set_of.reshape(-1), shares)

    @property
    def matched(self) -> float:
        """The share of all pairs of rows that have a label in common."""
        counts = np.bincount(self.set_of, minlength=len(self.shares))
        return float(counts @ self.shares @ counts) / len(self.set_of) ** 2

    def signs(self, rows: slice) -> FloatArray:
        """Return z of these rows with all rows: +1 where they share a label, −1 where not."""
        return np.where(self.shares[self.set_of[rows]][:, self.set_of], 1.0, -1.0)

    def sign_moment(self, images: FloatArray, texts: FloatArray) -> FloatArray:
        """Return AᵀZB through the sums of each set: Z has one value for each two sets."""
        return np.asarray(self._sums(images).T @ np.where(self.shares, 1.0, -1.0) @ self._sums(texts))

    def sample(self, ratio: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Draw for each row one that shares a label and ``ratio`` that do not, counted 0 where there are none."""
        partners = np.zeros((len(self.set_of), ratio + 1), dtype=np.intp)
        counts = np.ones(partners.shape)
        for number, shared in enumerate(self.shares):
            rows = np.flatnonzero(self.set_of == number)
            same = shared[self.set_of]
            partners[rows, 0] = rng.choice(np.flatnonzero(same), size=len(rows))
            if same.all():
                counts[rows, 1:] = 0
            else:
                partners[rows, 1:] = rng.choice(np.flatnonzero(~same), size=(len(rows), ratio))
        return partners, counts

    def _sums(self, rows: FloatArray) -> FloatArray:
        places, shape = (self.set_of, np.arange(len(rows))), (len(self.shares), len(rows))
        return np.asarray(scipy.sparse.csr_array((np.ones(len(rows)), places), shape=shape) @ rows)


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseSM(CrossProductModel):
    """Pairwise semantic matching: a bilinear score that tells pairs of one class from pairs of two.

        min over W, c of  (1/m) Σᵢⱼ log(1 + exp(−zᵢⱼ (aᵢᵀW bⱼ + c))) + λ/2 ‖W‖²,    zᵢⱼ = +1 if yᵢ = yⱼ, else −1,

    with λ = 1/(mC): `LogisticCrossProduct` with the labels of pairs known instead of guessed; rows with several labels
    match when they share one. `MarginalSM` learns the same probability from two classifiers, faster and usually better;
    what this method adds is a score in the features themselves.

    Parameters
    ----------
    C : float
        Inverse strength of the ridge; Menon et al. (2015) chose 1 on Wikipedia and TVGraz and 10 on Pascal.
    ratio : int or None
        For each picture one text of its class and this many of other classes, drawn at random (S in the paper: 10, 5
        and 10; what is drawn for a positive is our reading). None takes all n² pairs, block by block.
    loss : {"logistic", "squared"}
        ``squared`` is (s − z)², which over all pairs has a closed form.
    feature_share, center, fit_intercept, instances, max_iter, tol, random_state
        As in `LogisticCrossProduct`.

    Attributes
    ----------
    W_ : array
        The matrix of the score; ``rank_`` is its numerical rank, ``strongest_pairs`` reads it.

    References
    ----------
    Menon, Surian and Chawla, "Cross-modal retrieval: a pairwise classification approach", SDM 2015, section 5.1.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import PairwiseSM
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> images, texts = rng.normal(size=(100, 6)) + 2 * labels[:, None], rng.normal(size=(100, 4)) - 2 * labels[:, None]
    >>> round(PairwiseSM().fit(images, texts, labels).score(images, texts, labels), 1)
    1.0
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels"})
    when_to_use: ClassVar[str] = "Labelled items, when the score should be readable in pairs of features."
    title: ClassVar[str] = "pairwise SM"
    grid: ClassVar[Grid] = {"C": [0.1, 10.0]}
    variants: ClassVar[Variants] = {"pairwise SM": {"ratio": 5}}

    C: Positive = 1.0
    loss: PairLoss = "logistic"
    fit_intercept: bool = True

    def _solve(self, images: FloatArray, texts: FloatArray, targets: Targets) -> tuple[FloatArray, float]:
        images, texts, targets = targets.with_labels_only(images, texts)
        sets = LabelSets.of(targets.indicator)
        if self.ratio is None and self.loss == "squared" and self.feature_share == 1:
            ridge = self._ridge(images, texts, len(images) ** 2)
            mean_sign = 2 * sets.matched - 1 if self.fit_intercept else None
            return fit_least_squares(images, texts, sets.sign_moment, ridge=ridge, mean_sign=mean_sign)
        return self._classify(images, texts, *self._term(sets))

    def _term(self, sets: LabelSets) -> tuple[PairTerm, float]:
        """Return the pairs with their loss, and the share of them that match."""
        if self.ratio is None:
            pairs = AllPairs(len(sets.set_of))
            return PairTerm(pairs, classification_loss(self.loss, sets.signs)), sets.matched
        partners, counts = sets.sample(self.ratio, np.random.default_rng(self.random_state))
        loss = classification_loss(self.loss, first_matches(self.ratio + 1), counts)
        return PairTerm(SampledPairs(partners), loss), len(counts) / float(counts.sum())
