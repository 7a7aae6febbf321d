"""The ranking of a gallery by its points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import BoolArray, IntArray
from diptych.collection.asked import Asked
from diptych.collection.gallery import Gallery
from diptych.collection.reranking import Reranking
from diptych.collection.top_rows import top_rows


@dataclass(frozen=True)
class PointRanking:
    """Ranks the rows of a gallery for a query, all of them or the ``allowed`` ones."""

    asked: Asked
    allowed: BoolArray | None
    exact: bool
    reranking: Reranking | None = None

    @property
    def gallery(self) -> Gallery:
        """What is ranked."""
        return self.asked.gallery

    def nearest(self, k: int) -> IntArray:
        """Return the rows of the ``k`` best, best first; fewer where there are fewer."""
        if self.reranking is None:
            return self._nearest(k)
        # As deep for every page, so that pages fit together.
        rows = self._nearest(max(k, self.reranking.depth))
        return self.reranking.ordered(rows, self.asked.terms, self.gallery, self.asked.target)[:k]

    def _nearest(self, k: int) -> IntArray:
        gallery = self.gallery
        if not len(gallery):
            return np.zeros(0, dtype=np.int64)
        k = min(k, len(gallery))
        if self.asked.vector is not None:
            rows = gallery.search(self.asked.vector, k, allowed=self.allowed, exact=self.exact)[0][0]
            return np.asarray(rows[rows >= 0])
        usable = np.flatnonzero(gallery.live if self.allowed is None else gallery.live & self.allowed)
        scores = self.asked.scores(gallery.vectors[usable])
        return np.asarray(usable[top_rows(scores, gallery.order[usable], k)])
