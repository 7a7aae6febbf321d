"""What the outputs of one side's hashing network are trained for while the other side's stand still."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.arrays import IntArray
from diptych.models.neural.torch_package import torch_package


@dataclass(frozen=True)
class HashObjective:
    """Likelihood of shared labels, distance to the codes and balance of the bits, batch by batch.

    ``indicator`` is the 0/1 matrix of labels as a tensor, ``gamma`` and ``eta`` weigh the last two, and
    ``n_compared`` bounds how many pairs a batch is compared with.
    """

    indicator: Any
    gamma: float
    eta: float
    n_compared: int
    balanced: bool

    def compared(self, rng: np.random.Generator) -> IntArray | slice:
        """Return all pairs, or a draw where there are more than ``n_compared``."""
        n_pairs = len(self.indicator)
        return slice(None) if n_pairs <= self.n_compared else rng.integers(n_pairs, size=self.n_compared)

    def side(
        self, live: Any, rows: IntArray, *, own: Any, other: Any, codes: Any, compared: IntArray | slice = slice(None)
    ) -> Any:
        """Return the part of the objective that a batch of one side decides, divided by n times the batch.

        ``live`` are the outputs of ``rows``, ``own`` and ``other`` those of all pairs on this side and on the other,
        as last seen. The likelihood of the pairs ``compared`` stands for that of all.
        """
        beside = other[compared]
        theta = live @ beside.T / 2
        shared = (self.indicator[rows] @ self.indicator[compared].T > 0).to(theta.dtype)
        misfits = torch_package().nn.functional.softplus(theta) - shared * theta
        if self.balanced:
            misfits = misfits * _even_weights(shared)
        misfit = misfits.sum() * (len(own) / len(beside))
        quantisation = ((codes[rows] - live) ** 2).sum()
        balance = _balance(live, len(own))
        return (misfit + self.gamma * quantisation + self.eta * balance) / (len(own) * len(rows))


def _even_weights(shared: Any) -> Any:
    """Return weights of mean one that give pairs with and without a shared label half of the sum each."""
    share = shared.mean().clamp(1 / shared.numel(), 1 - 1 / shared.numel())
    return shared / (2 * share) + (1 - shared) / (2 * (1 - share))


def _balance(live: Any, n_pairs: int) -> Any:
    """Return the batch's share of ‖1ᵀF‖² = Σ_ij f_i·f_j, estimated from its own outputs without bias.

    The square of the batch's sum alone would count each f_i·f_i too often and draw all outputs to zero.
    """
    squares = (live**2).sum()
    crossed = (live.sum(dim=0) ** 2).sum() - squares
    return squares + crossed * (n_pairs - 1) / max(1, len(live) - 1)
