"""One setting that was tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Trial:
    """One setting and its score on each hold-out: the mean of both directions."""

    parameters: dict[str, Any]
    scores: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean over the hold-outs."""
        return float(np.mean(self.scores))

    @property
    def deviation(self) -> float:
        """The standard deviation over the hold-outs."""
        return float(np.std(self.scores))
