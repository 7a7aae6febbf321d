"""Clicks with the share of the position taken out, and which of them were accidents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit

from diptych.arrays import FloatArray, IntArray
from diptych.collection.learning.position_model import Impressions, PositionModel

_SMALLEST = 1e-9
_APART = 2.0


class ClickMixture:
    """Wanted and unwanted items, told apart by how often a look at them ends in a click.

    An item with e looks is clicked c times, c ~ Poisson(ρ·e) if it is wanted and Poisson(ε·e) if not; a share π of the
    items is wanted. Expectation maximisation (Dempster, Laird & Rubin, 1977) estimates ``wanted_rate_`` ρ,
    ``noise_rate_`` ε and ``share_`` π, and Bayes' rule then says how likely an item is wanted.

    >>> clicks, looks = np.array([8.0, 9.0, 1.0, 1.0, 0.0, 0.0]), np.full(6, 10.0)
    >>> mixture = ClickMixture().fit(clicks, looks)
    >>> round(mixture.wanted_rate_, 2), round(mixture.noise_rate_, 2), mixture.wanted(clicks, looks).round(2).tolist()
    (0.85, 0.05, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    """

    wanted_rate_: float
    noise_rate_: float
    share_: float

    def __init__(self, *, n_iterations: int = 500, tolerance: float = 1e-6) -> None:
        self.n_iterations = n_iterations
        self.tolerance = tolerance

    def fit(self, clicks: FloatArray, looks: FloatArray) -> Self:
        """Estimate the rates from the clicks and looks of items."""
        mean = max(float(clicks.sum() / max(looks.sum(), _SMALLEST)), _SMALLEST)
        values = np.array([4 * mean, mean / 2, 0.2])
        for _ in range(self.n_iterations):
            self.wanted_rate_, self.noise_rate_, self.share_ = values.tolist()
            weight = self._posterior(clicks, looks)
            new = np.array([_rate(weight, clicks, looks), _rate(1 - weight, clicks, looks), weight.mean()])
            new = np.clip(new, _SMALLEST, [np.inf, np.inf, 1 - _SMALLEST])
            change = float(np.abs(new / values - 1).max())
            values = new
            if change < self.tolerance:
                break
        self.wanted_rate_, self.noise_rate_, self.share_ = values.tolist()
        return self

    def wanted(self, clicks: FloatArray, looks: FloatArray) -> FloatArray:
        """Return how likely each item is wanted; 0 for all where the two kinds are hardly different."""
        if self.wanted_rate_ < _APART * self.noise_rate_:
            return np.zeros(len(clicks))
        return self._posterior(clicks, looks)

    def _posterior(self, clicks: FloatArray, looks: FloatArray) -> FloatArray:
        wanted, noise, share = self.wanted_rate_, self.noise_rate_, self.share_
        evidence = clicks * np.log(wanted / noise) - looks * (wanted - noise)
        return np.asarray(expit(np.log(share / (1 - share)) + evidence))


def _rate(weight: FloatArray, clicks: FloatArray, looks: FloatArray) -> float:
    return float(weight @ clicks) / max(float(weight @ looks), _SMALLEST)


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
