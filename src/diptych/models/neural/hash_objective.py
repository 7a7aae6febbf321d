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
        misfit = (torch_package().nn.functional.softplus(theta) - shared * theta).sum() * (len(own) / len(beside))
        quantisation = ((codes[rows] - live) ** 2).sum()
        balance = ((own.sum(dim=0) - own[rows].sum(dim=0) + live.sum(dim=0)) ** 2).sum()
        return (misfit + self.gamma * quantisation + self.eta * balance) / (len(own) * len(rows))
