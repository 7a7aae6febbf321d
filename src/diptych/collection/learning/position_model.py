"""Position bias: how much of a click is owed to its place, and clicks with that share and with accidents taken out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.errors import InvalidInputError
from diptych.models.clicks.query_memory import ClickMixture


@dataclass(frozen=True, eq=False)
class Impressions:
    """Items shown for queries, by position: how often each was shown there, and how often clicked.

    ``queries`` and ``items`` are the different strings, in the order of their first appearance; ``query_ids`` and
    ``item_ids`` say which of them a row is about. Positions count from 1. A row stands for ``shown`` searches, those in
    which something further up was clicked if ``after_click``.

    >>> from diptych.collection.learning import Impressions
    >>> seen = Impressions.from_rows([("a dog", "p1", 1, 10, 6), ("a dog", "p2", 2, 10, 1), ("a cat", "p2", 1, 3, 2)])
    >>> seen.queries, seen.items, len(seen), seen.n_clicks
    (('a dog', 'a cat'), ('p1', 'p2'), 3, 9.0)
    """

    queries: tuple[str, ...]
    items: tuple[str, ...]
    query_ids: IntArray
    item_ids: IntArray
    positions: IntArray
    shown: FloatArray
    clicked: FloatArray
    after_click: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __post_init__(self) -> None:
        if not len(self.after_click):
            object.__setattr__(self, "after_click", np.zeros(len(self), dtype=bool))
        columns = (self.query_ids, self.item_ids, self.positions, self.shown, self.clicked)
        if len({len(column) for column in columns}) != 1:
            raise InvalidInputError(f"the columns of impressions differ in length: {[len(each) for each in columns]}")
        if len(self) and self.positions.min() < 1:
            raise InvalidInputError(f"positions count from 1, got {int(self.positions.min())}")
        if len(self) and not (self.clicked <= self.shown).all():
            row = int(np.argmax(self.clicked > self.shown))
            raise InvalidInputError(
                f"row {row} was clicked {self.clicked[row]:g} times but shown {self.shown[row]:g} times; "
                "count an item once in a search"
            )

    def __len__(self) -> int:
        return len(self.query_ids)

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[object]]) -> Self:
        """Return the impressions of rows (query, item, position, times shown, times clicked)."""
        columns = list(zip(*rows, strict=True)) or [()] * 5
        queries, query_ids = _interned(columns[0])
        items, item_ids = _interned(columns[1])
        shown, clicked = (np.asarray(column, dtype=np.float64) for column in columns[3:])
        return cls(queries, items, query_ids, item_ids, np.asarray(columns[2], dtype=np.int64), shown, clicked)

    @property
    def n_clicks(self) -> float:
        """How often anything was clicked."""
        return float(self.clicked.sum())

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The different (query, item) as one number each, ascending, and which of them each row is about."""
        keys = self.query_ids.astype(np.int64) * max(1, len(self.items)) + self.item_ids
        different, rows = np.unique(keys, return_inverse=True)
        return different, rows.reshape(-1)

    def select(self, rows: AnyArray) -> Impressions:
        """Return some rows, given as numbers or as a mask; the queries and items keep their numbers."""
        ids = self.query_ids[rows], self.item_ids[rows]
        counts = self.shown[rows], self.clicked[rows]
        return Impressions(self.queries, self.items, *ids, self.positions[rows], *counts, self.after_click[rows])


def _interned(texts: Sequence[object]) -> tuple[tuple[str, ...], IntArray]:
    numbers: dict[str, int] = {}
    ids = np.array([numbers.setdefault(str(text), len(numbers)) for text in texts], dtype=np.int32)
    return tuple(numbers), ids


_STEEPEST = 1.0
# At most so many rounds, until no θ changes by more, relatively.
_ROUNDS, _TOLERANCE = 500, 1e-6
# Positions shown less often in varying pairs count as not linked.
_FEWEST_SHOWINGS = 30.0
_SMALLEST = 1e-6
_SCORE_CLASSES = 25
_ETAS = np.linspace(0.0, 3.0, 301)


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
    >>> from diptych.collection.learning import Impressions, PositionModel
    >>> seen = Impressions.from_rows([("dog", "a", 1, 100, 60), ("dog", "a", 2, 100, 30), ("dog", "b", 2, 50, 10)])
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
        if not len(impressions):
            raise InvalidInputError("there are no impressions to learn positions from; serve the collection first")
        deepest = int(impressions.positions.max())
        telling, linked = self._telling(impressions), np.zeros(deepest, dtype=bool)
        if telling.n_clicks > 0:
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
        different, pair = impressions.pairs
        lowest = np.full(len(different), np.iinfo(np.int64).max)
        highest = np.zeros(len(different), dtype=np.int64)
        np.minimum.at(lowest, pair, impressions.positions)
        np.maximum.at(highest, pair, impressions.positions)
        clicked = np.bincount(pair, impressions.clicked, len(different)) > 0
        return impressions.select(((lowest < highest) & clicked)[pair])

    def _linked(self, telling: Impressions, deepest: int) -> BoolArray:
        """Mark the positions that chains of shared pairs compare with the first one."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        places = telling.positions - 1
        often = np.bincount(places, telling.shown, deepest) >= _FEWEST_SHOWINGS
        often &= np.bincount(places, telling.clicked, deepest) > 0
        kept = often[places]
        different, pair = telling.pairs
        seen_at = coo_array((np.ones(int(kept.sum())), (places[kept], pair[kept])), (deepest, len(different)))
        _, group = connected_components(seen_at @ seen_at.T, directed=False)
        linked: BoolArray = often & (group == group[0])
        return linked if linked[0] and linked.sum() > 1 else np.zeros(deepest, dtype=bool)

    def _alternated(self, rows: Impressions, linked: BoolArray, start: FloatArray) -> tuple[FloatArray, float]:
        """Return θ and ψ; θ of positions that are not ``linked`` stays as it starts."""
        theta, states = start.copy(), np.ones(2)
        different, pair = rows.pairs
        places, after = rows.positions - 1, rows.after_click.astype(np.int64)
        clicks_of_pair = np.bincount(pair, rows.clicked, len(different))
        for _ in range(_ROUNDS):
            looks = np.bincount(pair, rows.shown * theta[places] * states[after], len(different))
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
    classes = np.searchsorted(edges, scores)
    return replace(impressions, query_ids=np.zeros_like(classes), item_ids=classes, items=("",) * _SCORE_CLASSES)


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


_BEST_GRADE = 3


@dataclass(frozen=True, eq=False)
class CorrectedClicks:
    """How much each item is wanted for each query, one row for each (query, item) that was shown.

    ``rates`` are the estimated shares of people who click the item among those who look at it, 0 for what accidents
    explain as well; ``clicks`` those it would have got at the top of the list; ``grades`` are 0 to 3, as judges give
    them. ``noise_rate`` is how often something unwanted is clicked at a look, where that was estimated.
    """

    queries: tuple[str, ...]
    items: tuple[str, ...]
    query_ids: IntArray
    item_ids: IntArray
    rates: FloatArray
    clicks: FloatArray
    grades: FloatArray
    noise_rate: float | None = None

    def __len__(self) -> int:
        return len(self.query_ids)


def corrected_clicks(
    impressions: Impressions, positions: PositionModel, *, least: float = 0.05, prior: float = 1.0
) -> CorrectedClicks:
    """Return what people want, from what they clicked and how likely they had looked there.

    e = Σ n·max(θ_r, ``least``) is the expected number of looks at an item in n showings: inverse propensity weighting,
    with propensities clipped from below (Joachims et al., "Unbiased learning-to-rank with biased feedback", WSDM 2017).
    Some clicks are accidents. Items are therefore taken for a mixture of wanted and unwanted ones, clicked with
    Poisson rates ρ and ε at each look; the noise floor ε, ρ and the share of wanted items are estimated by expectation
    maximisation. What is more likely wanted than not counts, at the rate (c + ``prior``·ρ)/(e + ``prior``) of its c
    clicks, and its probability w of being wanted gives its grade, 3·w rounded: 2 or 3. Where ρ is not at least twice ε
    the clicks tell no wanted items apart, and all grades are 0.

    >>> from diptych.collection.learning import Impressions, PositionModel, corrected_clicks
    >>> shown = [("dog", "a", 1, 90, 60), ("dog", "b", 2, 90, 30), ("dog", "c", 3, 90, 1), ("dog", "d", 4, 90, 2)]
    >>> seen = Impressions.from_rows(shown)
    >>> found = corrected_clicks(seen, PositionModel().fit(seen))
    >>> [found.items[item] for item in found.item_ids], found.grades.tolist()
    (['a', 'b', 'c', 'd'], [3.0, 3.0, 0.0, 0.0])
    """
    different, pair = impressions.pairs
    examined = impressions.shown * positions.examined(impressions.positions, impressions.after_click, least=least)
    looks, shown, clicks = (
        np.bincount(pair, values, len(different)).astype(np.float64)
        for values in (examined, impressions.shown, impressions.clicked)
    )
    found = ClickMixture().fit(clicks, looks)
    probability = found.wanted(clicks, looks)
    rates = np.minimum((clicks + prior * found.wanted_rate_) / (looks + prior), 1.0)
    rates = np.where(probability > 0.5, rates, 0.0)
    grades = np.where(probability > 0.5, np.round(_BEST_GRADE * probability), 0.0)
    query_ids, item_ids = np.divmod(different, max(1, len(impressions.items)))
    return CorrectedClicks(
        impressions.queries, impressions.items, query_ids, item_ids, rates, rates * shown, grades, found.noise_rate_
    )
