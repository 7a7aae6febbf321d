"""Wanted and unwanted pictures of a click log, told apart by how often a look ends in a click."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import expit

from diptych.arrays import AnyArray, FloatArray, IntArray

_LEAST_CHANCE = 1e-9
_APART = 2.0
_SHARE_ROUNDS = 20


class ClickMixture:
    """Wanted and unwanted items, told apart by how often a look at them ends in a click.

    An item with e looks is clicked c times, c ~ Poisson(ρ·e) if it is wanted and Poisson(ε·e) if not; a share π of the
    items is wanted. Expectation maximisation (Dempster, Laird & Rubin, 1977) estimates ``wanted_rate_`` ρ,
    ``noise_rate_`` ε and ``share_`` π, and Bayes' rule then says how likely an item is wanted. One click says the same
    whether ten looks or a tenth of one were expected where it happened; a rate c/e does not.

    Parameters
    ----------
    n_iterations : int
        At most so many rounds.
    tolerance : float
        Stop when no estimate changes by more, relatively.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models.clicks.click_mixture import ClickMixture
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
        mean = max(float(clicks.sum() / max(looks.sum(), _LEAST_CHANCE)), _LEAST_CHANCE)
        values = np.array([4 * mean, mean / 2, 0.2])
        for _ in range(self.n_iterations):
            self.wanted_rate_, self.noise_rate_, self.share_ = values.tolist()
            weight = self._posterior(clicks, looks, self.share_)
            new = np.array([_rate(weight, clicks, looks), _rate(1 - weight, clicks, looks), weight.mean()])
            new = np.clip(new, _LEAST_CHANCE, [np.inf, np.inf, 1 - _LEAST_CHANCE])
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
        return self._posterior(clicks, looks, self.share_)

    def surplus(
        self, clicks: FloatArray, looks: FloatArray, groups: IntArray, *, prior: float = 10.0, shape: float = 3.0
    ) -> FloatArray:
        """Return how much likelier each item is wanted than the items of its group (a query) on the whole.

        The share of wanted items in a group is estimated as if it had ``prior`` items more, of the common share. Items
        of one kind are not all alike: their rates are taken to follow a Gamma distribution of this ``shape`` around ρ
        or ε, which makes c negative binomial, so that many looks at a rate between both do not decide. Kinds that are
        hardly different give values near 0.
        """
        sizes = np.bincount(groups)
        shares = np.full(len(sizes), self.share_)
        for _ in range(_SHARE_ROUNDS):
            likely = self._posterior(clicks, looks, shares[groups], shape)
            found = np.bincount(groups, likely, len(sizes))
            shares = np.clip((found + prior * self.share_) / (sizes + prior), _LEAST_CHANCE, 1 - _LEAST_CHANCE)
        return np.asarray(self._posterior(clicks, looks, shares[groups], shape) - shares[groups])

    def _posterior(
        self, clicks: FloatArray, looks: FloatArray, share: float | FloatArray, shape: float = np.inf
    ) -> FloatArray:
        wanted, noise = self.wanted_rate_, self.noise_rate_
        if np.isinf(shape):
            unclicked: AnyArray = looks * (wanted - noise)
        else:
            unclicked = (clicks + shape) * np.log((shape + looks * wanted) / (shape + looks * noise))
        return np.asarray(expit(np.log(share / (1 - share)) + clicks * np.log(wanted / noise) - unclicked))


def _rate(weight: FloatArray, clicks: FloatArray, looks: FloatArray) -> float:
    return float(weight @ clicks) / max(float(weight @ looks), _LEAST_CHANCE)
