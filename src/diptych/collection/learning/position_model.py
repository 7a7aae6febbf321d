"""Position bias: how much of a click is owed to its place."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.errors import InvalidInputError

_STEEPEST = 1.0
# At most so many rounds, until no θ changes by more, relatively.
_ROUNDS, _TOLERANCE = 500, 1e-6
# Positions shown less often in varying pairs count as not linked.
_FEWEST_SHOWINGS = 30.0
_SMALLEST = 1e-6
_SCORE_CLASSES = 25
_ETAS = np.linspace(0.0, 3.0, 301)


@dataclass(frozen=True, eq=False)
class Impressions:
    """How often pairs of query and item were shown at a position, and how often they were clicked there.

    ``pairs`` has a number for each query and item, ``positions`` count from 1. A row stands for ``shown`` searches,
    those in which something further up was clicked if ``after_click``.
    """

    pairs: IntArray
    positions: IntArray
    shown: FloatArray
    clicked: FloatArray
    after_click: BoolArray

    @cached_property
    def grouped(self) -> tuple[int, IntArray]:
        """The number of different pairs, and which of them each row is about."""
        different, rows = np.unique(self.pairs, return_inverse=True)
        return len(different), rows.reshape(-1)

    def select(self, rows: BoolArray) -> Impressions:
        """Return some rows, given as a mask."""
        return Impressions(*(getattr(self, each.name)[rows] for each in fields(self)))


class PositionModel:
    """The position-based model: P(click) = θ_r · ψ_s · α_{q,d}.

    θ_r is how likely a person looks at position r (θ₁ = 1), α how likely one who looks at item d wants it for query q
    (Craswell et al., "An experimental comparison of click position-bias models", WSDM 2008). Items that one query
    showed at several positions, because the collection grew, a filter was set or another retriever answered, tell θ
    without experiments on people (Agarwal et al., "Estimating position bias without intrusive interventions", WSDM
    2019): α cancels among them. The estimate alternates, as expectation maximisation does, between

        α_p = Σ_r c_{p,r} / Σ_r n_{p,r} θ_r   and   θ_r = Σ_p c_{p,r} / Σ_p n_{p,r} α_p

    for c clicks in n showings of pair p = (q, d), which maximises the Poisson likelihood. Unlike the Bernoulli one it
    is not biased by having a parameter for each pair.

    Many people stop at the first good answer. ψ is how much less likely a person looks where something further up was
    clicked already (s), compared with where nothing was: 1 for people who look at positions, 0 for those who read down
    to the first click (the cascade of Craswell et al.). It is estimated in the same way, since both occur for one pair.

    Positions that no shared pair links to the others are filled in by the curve r^−η through those that are linked.
    Where positions never vary, items of like ``scores`` by the retriever that ranked them stand for one another: they
    are found at different positions for different queries (Wang et al., "Position bias estimation for unbiased learning
    to rank in personal search", WSDM 2018, regress on features to the same end). Without scores η is what makes the
    mean click rate fall as it does, but at most 1, the value usual in simulations; `is_assumed_` says so.

    Attributes
    ----------
    propensities_ : array
        θ of positions 1, 2, …
    after_click_ : float
        ψ after a click further up.
    eta_ : float
        Of the curve r^−η.
    is_assumed_ : bool
        Whether no position varied and nothing else told θ.
    n_linked_ : int
        How many positions were estimated, not filled in.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.collection.learning import Impressions, PositionModel
    >>> shown, clicked = np.array([100.0, 100.0, 50.0]), np.array([60.0, 30.0, 10.0])
    >>> pairs, positions = np.array([0, 0, 1]), np.array([1, 2, 2])
    >>> seen = Impressions(pairs, positions, shown, clicked, np.zeros(3, dtype=bool))
    >>> PositionModel().fit(seen).propensities_.round(2).tolist()
    [1.0, 0.5]
    """

    propensities_: FloatArray
    after_click_: float
    eta_: float
    is_assumed_: bool
    n_linked_: int

    def fit(self, impressions: Impressions, scores: FloatArray | None = None) -> Self:
        """Estimate θ and ψ from what was shown and clicked; ``scores`` are those of the retriever, one for each row."""
        if not len(impressions.pairs):
            raise InvalidInputError("there are no impressions to learn positions from; serve the collection first")
        deepest = int(impressions.positions.max())
        telling, linked = self._telling(impressions), np.zeros(deepest, dtype=bool)
        if telling.clicked.any():
            linked = self._linked(telling, deepest)
        if not linked.any() and scores is not None:
            telling = _alike(impressions, scores)
            linked = self._linked(telling, deepest)
        ranks = np.arange(1.0, deepest + 1)
        self.is_assumed_ = not linked.any()
        self.n_linked_ = int(linked.sum())
        if self.is_assumed_:
            self.eta_ = min(_STEEPEST, _decline(impressions, deepest))
            self.propensities_, self.after_click_ = self._alternated(impressions, linked, ranks**-self.eta_)
            return self
        rows = telling.select(linked[telling.positions - 1])
        theta, self.after_click_ = self._alternated(rows, linked, np.ones(deepest))
        weights = np.where(linked, np.bincount(telling.positions - 1, telling.shown, deepest), 0.0)
        self.eta_ = _curve(ranks, theta, weights)
        self.propensities_ = np.where(linked, theta, theta[0] * ranks**-self.eta_)
        return self

    def examined(self, positions: IntArray, after_click: BoolArray | None = None, *, least: float = 0.0) -> FloatArray:
        """Return θ·ψ of positions, but never less than ``least``; deeper ones than were fitted follow the curve."""
        fitted = len(self.propensities_)
        deeper = np.asarray(positions, dtype=np.float64) ** -self.eta_
        theta = np.where(positions <= fitted, self.propensities_[np.minimum(positions, fitted) - 1], deeper)
        if after_click is not None:
            theta = theta * np.where(after_click, self.after_click_, 1.0)
        return np.maximum(theta, least)

    def _telling(self, impressions: Impressions) -> Impressions:
        """Return the rows of pairs that were shown at several positions and clicked at any."""
        count, pair = impressions.grouped
        lowest = np.full(count, np.iinfo(np.int64).max)
        highest = np.zeros(count, dtype=np.int64)
        np.minimum.at(lowest, pair, impressions.positions)
        np.maximum.at(highest, pair, impressions.positions)
        clicked = np.bincount(pair, impressions.clicked, count) > 0
        return impressions.select(((lowest < highest) & clicked)[pair])

    def _linked(self, telling: Impressions, deepest: int) -> BoolArray:
        """Mark the positions that chains of shared pairs compare with the first one."""
        places = telling.positions - 1
        often = np.bincount(places, telling.shown, deepest) >= _FEWEST_SHOWINGS
        often &= np.bincount(places, telling.clicked, deepest) > 0
        kept = often[places]
        count, pair = telling.grouped
        seen_at = coo_array((np.ones(int(kept.sum())), (places[kept], pair[kept])), (deepest, count))
        _, group = connected_components(seen_at @ seen_at.T, directed=False)
        linked: BoolArray = often & (group == group[0])
        return linked if linked[0] and linked.sum() > 1 else np.zeros(deepest, dtype=bool)

    def _alternated(self, rows: Impressions, linked: BoolArray, start: FloatArray) -> tuple[FloatArray, float]:
        """Return θ and ψ; θ of positions that are not ``linked`` stays as it starts."""
        theta, states = start.copy(), np.ones(2)
        count, pair = rows.grouped
        places, after = rows.positions - 1, rows.after_click.astype(np.int64)
        clicks_of_pair = np.bincount(pair, rows.clicked, count)
        for _ in range(_ROUNDS):
            looks = np.bincount(pair, rows.shown * theta[places] * states[after], count)
            wanted = rows.shown * (clicks_of_pair / np.maximum(looks, _SMALLEST))[pair]
            at = _rates(places, rows.clicked, wanted * states[after], len(theta))
            new = np.where(linked, np.maximum(at / (at[0] or 1.0), _SMALLEST), theta)
            within = _rates(after, rows.clicked, wanted * new[places], 2)
            states_now = np.array([1.0, np.clip(within[1] / within[0], _SMALLEST, 1.0) if within[0] > 0 else 1.0])
            change = max(float(np.abs(new / theta - 1).max()), float(np.abs(states_now / states - 1).max()))
            theta, states = new, states_now
            if change < _TOLERANCE:
                break
        return theta, float(states[1])


def _rates(groups: IntArray, clicks: FloatArray, expected: FloatArray, count: int) -> FloatArray:
    """Return clicks for each expected one, by group; 1 where none is expected."""
    found, due = np.bincount(groups, clicks, count), np.bincount(groups, expected, count)
    return np.asarray(np.where(due > 0, found / np.where(due > 0, due, 1.0), 1.0))


def _alike(impressions: Impressions, scores: FloatArray) -> Impressions:
    """Return impressions in which items of about the same score are one item, whatever the query."""
    edges = np.quantile(scores, np.linspace(0, 1, _SCORE_CLASSES + 1)[1:-1])
    return replace(impressions, pairs=np.searchsorted(edges, scores))


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
