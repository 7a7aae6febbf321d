"""Coordinates in which a side's features are uncorrelated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from diptych.arrays import FloatArray


@dataclass(frozen=True)
class PrincipalAxes:
    """A side in other coordinates: ``rows = original @ basis`` with orthonormal columns, and their mean squares."""

    rows: FloatArray
    basis: FloatArray
    energies: FloatArray

    @classmethod
    def of(cls, rows: FloatArray) -> PrincipalAxes:
        """Rotate ``rows`` to their principal axes about the origin and drop directions in which nothing lies."""
        values, vectors = eigh((rows.T @ rows).astype(np.float64) / len(rows))
        noise = max(rows.shape) * float(np.finfo(rows.dtype).eps)
        kept = np.flatnonzero(values > noise * max(float(values[-1]), 0.0))[::-1]
        basis = vectors[:, kept]
        return cls(rows @ basis.astype(rows.dtype, copy=False), basis, values[kept])

    @classmethod
    def unrotated(cls, rows: FloatArray) -> PrincipalAxes:
        """Keep the features as they are, for objectives that treat single features differently."""
        energies = (rows**2).mean(axis=0, dtype=np.float64)
        return cls(rows, np.eye(rows.shape[1]), energies)
