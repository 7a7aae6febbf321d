"""Pairs of rows that share a label, and pairs that do not, drawn at random."""

from __future__ import annotations

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray

_ATTEMPTS = 20


class LabelPairs:
    """Draws partners for rows whose labels are known, without ever looking at all pairs.

    A similar partner has one of the row's labels, drawn evenly, so that rare labels count as much as frequent ones. A
    dissimilar one has none of them; where some draws find none, there may be none at all, and the row goes without.

    >>> import numpy as np
    >>> from diptych.models.neural.label_pairs import LabelPairs
    >>> pairs = LabelPairs(np.array([[1, 0], [1, 0], [0, 1]]))
    >>> rows, rng = np.array([2, 2]), np.random.default_rng(0)
    >>> pairs.similar(rows, rng)
    array([2, 2])
    >>> partners, found = pairs.dissimilar(rows, rng)
    >>> bool(found.all()), set(partners.tolist()) <= {0, 1}
    (True, True)
    """

    def __init__(self, indicator: FloatArray) -> None:
        self._indicator = np.asarray(indicator, dtype=np.float32)
        _, self._labels = np.nonzero(indicator)
        self._label_starts = _starts(np.count_nonzero(indicator, axis=1))
        _, self._members = np.nonzero(indicator.T)
        self._member_starts = _starts(np.count_nonzero(indicator, axis=0))

    def similar(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Return for each row another, or the row itself, that shares a label with it."""
        labels = _draw(self._labels, self._label_starts, rows, rng)
        return _draw(self._members, self._member_starts, labels, rng)

    def dissimilar(self, rows: IntArray, rng: np.random.Generator) -> tuple[IntArray, BoolArray]:
        """Return for each row one that shares no label with it, and whether one was found."""
        partners = rng.integers(len(self._indicator), size=len(rows))
        shared = self.share_a_label(rows, partners)
        for _ in range(_ATTEMPTS):
            if not shared.any():
                break
            partners[shared] = rng.integers(len(self._indicator), size=int(shared.sum()))
            shared = self.share_a_label(rows, partners)
        return partners, ~shared

    def share_a_label(self, rows: IntArray, partners: IntArray) -> BoolArray:
        """Return whether each row has a label of its partner."""
        return np.asarray(np.einsum("ij,ij->i", self._indicator[rows], self._indicator[partners]) > 0)


def _starts(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)])


def _draw(values: IntArray, starts: IntArray, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Return one of the values of each group, evenly."""
    sizes = starts[groups + 1] - starts[groups]
    return np.asarray(values[starts[groups] + (rng.random(len(groups)) * sizes).astype(np.intp)])
