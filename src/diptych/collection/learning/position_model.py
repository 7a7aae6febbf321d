"""How much of a click is owed to the place where an item was shown."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.learning.impressions import Impressions
from diptych.errors import InvalidInputError

_STEEPEST = 1.0
_ETAS = np.linspace(0.0, 3.0, 301)


class PositionModel:
    """The position-based model: P(click) = θ_r · α_{q,d}.

    θ_r is how likely a person looks at position r (θ₁ = 1), α how likely one who looks at item d wants it for query q
    (Craswell et al., "An experimental comparison of click position-bias models", WSDM 2008). Items that one query
    showed at several positions, because the collection grew, a filter was set or another retriever answered, tell θ
    without experiments on people (Agarwal et al., "Estimating position bias without intrusive interventions", WSDM
    2019): α cancels among them. The estimate alternates, as expectation maximisation does, between

        α_p = Σ_r c_{p,r} / Σ_r n_{p,r} θ_r   and   θ_r = Σ_p c_{p,r} / Σ_p n_{p,r} α_p

    for c clicks in n showings of pair p = (q, d), which maximises the Poisson likelihood. Unlike the Bernoulli one it
    is not biased by having a parameter for each pair: its equations hold in expectation at the true θ however seldom a
    pair was shown.

    Positions that no shared pair links to the others are filled in by the curve r^−η through those that are linked.
    Where positions never vary, nothing in the clicks tells a bad place from a bad item. Then η is what makes the mean
    click rate fall as it does, but at most 1, the value usual in simulations of such clicks; `is_assumed` says so.
    The retriever in force would get all the credit for its order with η = 0, and none with the fitted η.

    Parameters
    ----------
    n_iterations : int
        At most so many rounds.
    tolerance : float
        Stop when no θ changes by more, relatively.
    fewest_showings : float
        Positions shown less often in varying pairs count as not linked.

    Attributes
    ----------
    propensities_ : array
        θ of positions 1, 2, …
    eta_ : float
        Of the curve r^−η.
    is_assumed_ : bool
        Whether no position varied.
    n_linked_ : int
        How many positions were estimated, not filled in.

    Examples
    --------
    >>> from diptych.collection.learning import Impressions, PositionModel
    >>> seen = Impressions.from_rows([("dog", "a", 1, 100, 60), ("dog", "a", 2, 100, 30), ("dog", "b", 2, 50, 10)])
    >>> PositionModel().fit(seen).propensities_.round(2).tolist()
    [1.0, 0.5]
    """

    propensities_: FloatArray
    eta_: float
    is_assumed_: bool
    n_linked_: int

    def __init__(self, *, n_iterations: int = 500, tolerance: float = 1e-6, fewest_showings: float = 30.0) -> None:
        self.n_iterations = n_iterations
        self.tolerance = tolerance
        self.fewest_showings = fewest_showings

    def fit(self, impressions: Impressions) -> Self:
        """Estimate θ from what was shown and clicked."""
        if not len(impressions):
            raise InvalidInputError("there are no impressions to learn positions from; serve the collection first")
        deepest = int(impressions.positions.max())
        telling = self._telling(impressions)
        linked = np.zeros(deepest, dtype=bool)
        theta: FloatArray = np.ones(deepest)
        if telling.n_clicks > 0:
            linked = self._linked(telling, deepest)
            theta = self._alternated(telling.select(linked[telling.positions - 1]), linked)
        self.is_assumed_ = not linked.any()
        self.n_linked_ = int(linked.sum())
        ranks = np.arange(1.0, deepest + 1)
        if self.is_assumed_:
            self.eta_ = min(_STEEPEST, _decline(impressions, deepest))
            self.propensities_ = ranks**-self.eta_
            return self
        weights = np.where(linked, np.bincount(telling.positions - 1, telling.shown, deepest), 0.0)
        self.eta_ = _curve(ranks, theta, weights)
        self.propensities_ = np.where(linked, theta, theta[0] * ranks**-self.eta_)
        return self

    def examined(self, positions: IntArray, *, least: float = 0.0) -> FloatArray:
        """Return θ of positions, but never less than ``least``; deeper ones than were fitted follow the curve."""
        fitted = len(self.propensities_)
        deeper = np.asarray(positions, dtype=np.float64) ** -self.eta_
        theta = np.where(positions <= fitted, self.propensities_[np.minimum(positions, fitted) - 1], deeper)
        return np.maximum(theta, least)

    def _telling(self, impressions: Impressions) -> Impressions:
        """Return the rows of pairs that were shown at several positions and clicked at any."""
        different, pair = impressions.pairs
        lowest = np.full(len(different), np.iinfo(np.int64).max)
        highest = np.zeros(len(different), dtype=np.int64)
        np.minimum.at(lowest, pair, impressions.positions)
        np.maximum.at(highest, pair, impressions.positions)
        clicked = np.bincount(pair, impressions.clicked, len(different)) > 0
        return impressions.select(((lowest < highest) & clicked)[pair])

    def _linked(self, telling: Impressions, deepest: int) -> BoolArray:
        """Mark the positions that chains of shared pairs compare with the first one."""
        places = telling.positions - 1
        often = np.bincount(places, telling.shown, deepest) >= self.fewest_showings
        often &= np.bincount(places, telling.clicked, deepest) > 0
        kept = often[places]
        different, pair = telling.pairs
        seen_at = coo_array((np.ones(int(kept.sum())), (places[kept], pair[kept])), (deepest, len(different)))
        _, group = connected_components(seen_at @ seen_at.T, directed=False)
        linked: BoolArray = often & (group == group[0])
        return linked if linked[0] and linked.sum() > 1 else np.zeros(deepest, dtype=bool)

    def _alternated(self, rows: Impressions, linked: BoolArray) -> FloatArray:
        theta: FloatArray = np.ones(len(linked))
        if not len(rows):
            return theta
        different, pair = rows.pairs
        places, n_pairs = rows.positions - 1, len(different)
        clicks_of_pair = np.bincount(pair, rows.clicked, n_pairs)
        clicks_at = np.bincount(places, rows.clicked, len(linked))
        for _ in range(self.n_iterations):
            alpha = clicks_of_pair / np.bincount(pair, rows.shown * theta[places], n_pairs)
            expected = np.bincount(places, rows.shown * alpha[pair], len(linked))
            new = np.where(linked, clicks_at / np.where(expected > 0, expected, 1.0), 1.0)
            new = np.where(linked, np.maximum(new / new[0], 1e-6), 1.0)
            change = float(np.abs(new / theta - 1).max())
            theta = new
            if change < self.tolerance:
                break
        return theta


def _curve(ranks: FloatArray, theta: FloatArray, weights: FloatArray) -> float:
    """Return the η of r^−η nearest to known θ, by least squares of logarithms."""
    x, y = np.log(ranks), np.log(np.maximum(theta, 1e-6))
    square = float((weights * x * x).sum())
    return max(0.0, -float((weights * x * y).sum()) / square) if square > 0 else 0.0


def _decline(impressions: Impressions, deepest: int) -> float:
    """Return the η under which a click rate κ·r^−η makes the clicks by position likeliest (Poisson)."""
    shown = np.bincount(impressions.positions - 1, impressions.shown, deepest)
    clicks = np.bincount(impressions.positions - 1, impressions.clicked, deepest)
    logs = np.log(np.arange(1.0, deepest + 1))
    if not clicks.sum():
        return 0.0
    # κ is eliminated by its own best value.
    likelihood = [-eta * (clicks @ logs) - clicks.sum() * np.log(shown @ np.exp(-eta * logs)) for eta in _ETAS]
    return float(_ETAS[int(np.argmax(likelihood))])
