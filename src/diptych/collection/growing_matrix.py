"""Rows that are appended, never moved under a reader."""

from __future__ import annotations

import numpy as np

from diptych.arrays import AnyArray


class GrowingMatrix:
    """A matrix with room at its end, so that appending rows costs the rows alone.

    Views handed out earlier stay valid: rows are never overwritten, and a full matrix is copied to a larger one.

    >>> import numpy as np
    >>> from diptych.collection.growing_matrix import GrowingMatrix
    >>> matrix = GrowingMatrix(np.zeros((1, 2)))
    >>> first = matrix.rows
    >>> matrix.appended(np.ones((3, 2))).rows.sum(), len(first)
    (np.float64(6.0), 1)
    """

    def __init__(self, rows: AnyArray) -> None:
        self.rows = rows
        self._room: AnyArray = rows
        # Shared by all matrices in one room: how much of it is taken.
        self._taken = [len(rows)]

    def appended(self, block: AnyArray) -> GrowingMatrix:
        """Return the matrix with more rows; this one stays as it is."""
        start, stop = len(self.rows), len(self.rows) + len(block)
        grown = GrowingMatrix.__new__(GrowingMatrix)
        grown._room, grown._taken = self._room, self._taken
        if stop > len(self._room) or self._taken[0] != start:
            grown._room = np.empty((max(stop, 2 * start), *self.rows.shape[1:]), dtype=self.rows.dtype)
            grown._room[:start] = self.rows
            grown._taken = [start]
        grown._room[start:stop] = block
        grown._taken[0] = stop
        grown.rows = grown._room[:stop]
        return grown
