"""Triplets of a query, a picture clicked for it and one that was not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from diptych.arrays import BoolArray, IntArray, row_blocks

# A query for which so many random pictures in a row were clicked has no triplet this time.
_DRAWS = 20
# A small log is gone over until there are so many triplets, for their other pictures are always new ones.
_FEWEST_TRIPLETS = 2_000


@dataclass(frozen=True, eq=False)
class ClickTriplets:
    """Draws triplets (q, x⁺, x⁻) from clicks: x⁺ was clicked for q, x⁻ is a random picture that never was.

    Pair i is query ``queries[i]`` and picture ``positives[i]``; ``clicked`` are the sorted numbers
    query·n_images + picture of all clicks, also of those too few to make a pair.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from diptych.models.clicks.click_triplets import ClickTriplets
    >>> triplets = ClickTriplets.of(csr_array(np.array([[3.0, 1.0, 0.0]])), min_clicks=2)
    >>> [part.tolist() for part in triplets.draw(np.array([0]), np.random.default_rng(0))]
    [[0], [0], [2]]
    """

    queries: IntArray
    positives: IntArray
    clicked: IntArray
    n_images: int

    @classmethod
    def of(cls, table: csr_array, *, min_clicks: float = 0.0, max_images: int | None = None) -> Self:
        """Take the pairs of a (queries, pictures) matrix with enough clicks, the most clicked of each query."""
        queries = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        images, clicks = table.indices.astype(np.int64), table.data
        clicked = np.sort(queries * table.shape[1] + images)
        order = np.lexsort((images, -clicks, queries))
        if max_images is not None:
            order = order[np.arange(len(order)) - table.indptr[queries] < max_images]
        order = order[clicks[order] >= min_clicks]
        return cls(queries[order], images[order], clicked, table.shape[1])

    def __len__(self) -> int:
        return len(self.queries)

    def of_queries(self, chosen: BoolArray) -> Self:
        """Return the pairs of the queries for which ``chosen`` is true."""
        kept = chosen[self.queries]
        return type(self)(self.queries[kept], self.positives[kept], self.clicked, self.n_images)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Yield the triplets of all pairs in random order, ``size`` at a time; few pairs come several times."""
        passes = -(-_FEWEST_TRIPLETS // len(self))
        order = np.concatenate([rng.permutation(len(self)) for _ in range(max(1, passes))])
        for rows in row_blocks(len(order), size):
            yield self.draw(order[rows], rng)

    def draw(self, pairs: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
        """Return (queries, clicked pictures, other pictures) of ``pairs``, without pairs for which none was found."""
        queries = self.queries[pairs]
        negatives = rng.integers(self.n_images, size=len(pairs))
        wrong = self._is_clicked(queries, negatives)
        for _ in range(_DRAWS):
            if not wrong.any():
                break
            negatives[wrong] = rng.integers(self.n_images, size=int(wrong.sum()))
            wrong = self._is_clicked(queries, negatives)
        return queries[~wrong], self.positives[pairs][~wrong], negatives[~wrong]

    def _is_clicked(self, queries: IntArray, images: IntArray) -> BoolArray:
        wanted = queries * self.n_images + images
        places = np.minimum(np.searchsorted(self.clicked, wanted), len(self.clicked) - 1)
        return np.asarray(self.clicked[places] == wanted)
