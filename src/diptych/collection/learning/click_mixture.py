"""Which items are wanted, and which were clicked by accident."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import expit

from diptych.arrays import FloatArray

_SMALLEST = 1e-9
_APART = 2.0


class ClickMixture:
    """Wanted and unwanted items, told apart by how often a look at them ends in a click.

    An item with e looks is clicked c times, c ~ Poisson(ρ·e) if it is wanted and Poisson(ε·e) if not; a share π of the
    items is wanted. Expectation maximisation (Dempster, Laird & Rubin, 1977) estimates the three numbers, and Bayes'
    rule then says how likely an item is wanted.

    Parameters
    ----------
    n_iterations : int
        At most so many rounds.
    tolerance : float
        Stop when no number changes by more, relatively.

    Attributes
    ----------
    wanted_rate_, noise_rate_, share_ : float
        ρ, ε and π.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.collection.learning.click_mixture import ClickMixture
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
