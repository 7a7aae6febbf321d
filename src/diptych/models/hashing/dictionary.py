"""Dictionaries whose atoms are at most of unit length."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, unit_rows


def random_atoms(count: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Return atoms of unit length in random directions."""
    return unit_rows(rng.normal(size=(count, width)))


def fit_atoms(
    codes: FloatArray, rows: list[FloatArray], atoms: list[FloatArray], n_sweeps: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Return D that lower ‖X − SD‖² with rows of length at most 1, for one or more targets X of the same codes S.

    ``codes`` are S, ``rows`` the targets X and ``atoms`` their D to start from. One atom after the other takes its best
    value given the others. The error grows alike in all directions from that, so that under the bound the best value is
    the same one brought back to the unit ball. Atoms that no code uses are drawn anew.
    """
    widths = np.cumsum([part.shape[1] for part in atoms])[:-1]
    joint, targets = np.hstack(atoms), np.hstack([(codes.T @ part).astype(np.float64) for part in rows])
    gram = (codes.T @ codes).astype(np.float64)
    used = np.diag(gram) > np.finfo(np.float64).eps * np.trace(gram)
    parts = np.split(joint, widths, axis=1)
    for _ in range(n_sweeps):
        for atom in np.flatnonzero(used):
            joint[atom] += (targets[atom] - gram[atom] @ joint) / gram[atom, atom]
            for part in parts:
                length = np.sqrt(part[atom] @ part[atom])
                if length > 1:
                    part[atom] /= length
    for part in parts:
        part[~used] = random_atoms(int((~used).sum()), part.shape[1], rng)
    return [np.ascontiguousarray(part) for part in parts]
