"""One side of the data in its principal components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from diptych.arrays import FloatArray
from diptych.models.linear import project


@dataclass(frozen=True)
class PrincipalView:
    """Rows, their mean, and a basis that reduces their deviations to unit total variance; ``values`` is what it keeps.

    The rows are those that came in, not a copy: reduced ones are made only where a method needs them.
    """

    rows: FloatArray
    mean: FloatArray
    basis: FloatArray
    values: FloatArray

    @classmethod
    def of(
        cls, rows: FloatArray, mean: FloatArray, moment: FloatArray, energy: float, precision: float
    ) -> PrincipalView:
        """Keep the leading components with a share ``energy`` of the variance, and none that is rounding."""
        values, vectors = eigh(moment)
        values, vectors = values[::-1], vectors[:, ::-1]
        noise = max(len(values) * np.finfo(np.float64).eps, 32 * precision) * max(values[0], 0.0)
        real = max(1, int((values > noise).sum()))
        shares = np.cumsum(values[:real]) / values[:real].sum()
        kept = min(real, int(np.searchsorted(shares, energy - 1e-12)) + 1)
        total = float(values[:real].sum()) / len(rows)
        return cls(rows, mean, vectors[:, :kept] / np.sqrt(total), values[:kept] / total)

    def moment(self) -> FloatArray:
        """Return the second moment of the reduced rows: they are uncorrelated."""
        return np.diag(self.values)

    def reduce_cross(self, cross: FloatArray, other: PrincipalView) -> FloatArray:
        """Return the cross moment of the reduced rows of two views."""
        return self.basis.T @ cross @ other.basis

    def reduced(self) -> FloatArray:
        """Return the reduced rows."""
        return project(self.rows, self.mean, self.basis)
