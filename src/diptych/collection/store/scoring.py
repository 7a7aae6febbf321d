"""How the points of a space are stored, asked for and scored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from diptych.arrays import AnyArray, FloatArray, row_blocks, unit_rows
from diptych.collection.retriever_protocol import Side
from diptych.collection.store.points import PointForm, as_stored
from diptych.space import Direction, IndexForm, Space

LINEAR_SPACES = ("cosine", "pearson", "covariance", "dot", "corrected")
ENTRIES_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Scoring:
    """The scores of one space; in a *linear* one, inner products of vectors that are stored prepared."""

    space: Space
    direction: Direction

    @cached_property
    def is_linear(self) -> bool:
        """Whether scores are inner products of prepared vectors."""
        return self.space.name in LINEAR_SPACES and self.space.split is None

    @property
    def is_cosine(self) -> bool:
        """Whether scores are cosines, so that those of a combined query read like those of a single one."""
        return self.is_linear and self.space.name in ("cosine", "pearson")

    @property
    def is_hash_codes(self) -> bool:
        """Whether points are packed binary codes, compared by Hamming distance."""
        return self.space.name == "hamming" and self.space.split is None

    @property
    def metric(self) -> Literal["inner_product", "l2", "hamming"] | None:
        """The metric of an index, or None where all points are compared."""
        if self.is_linear:
            return "inner_product"
        if self.is_hash_codes:
            return "hamming"
        return "l2" if self.space.name == "euclidean" and self.space.split is None else None

    @property
    def is_symmetric(self) -> bool:
        """Whether a score is the same from whichever side is asked."""
        return self.metric is not None

    @property
    def form(self) -> PointForm:
        """How a point lies in the tables."""
        return "bits" if self.space.name == "hamming" else "f16"

    @cached_property
    def _prepared(self) -> IndexForm | None:
        return self.space.indexable(self.direction) if self.is_linear else None

    def stored(self, points: AnyArray) -> AnyArray:
        """Return points as they are stored: float16, prepared where the space is linear, or codes."""
        if points.dtype == np.uint8 or self._prepared is None:
            return as_stored(points)
        return as_stored(self._prepared.gallery(points))

    def comparable(self, stored: AnyArray, side: Side) -> AnyArray:
        """Return stored points of pictures or texts in the form that :meth:`Space.compare` takes."""
        if self.space.name != "corrected":
            return stored
        # The other spaces prepare prepared points as they are; here the side is multiplied by the correction.
        points = stored.astype(np.float32)
        points[:, -1] = 1 if side == "image" else -1
        return points

    def query_vectors(self, points: AnyArray) -> AnyArray:
        """Return points of a query as they are compared with stored ones."""
        if self._prepared is None:
            return points
        return np.ascontiguousarray(self._prepared.queries(points), dtype=np.float32)

    def combined(self, queries: AnyArray, weights: FloatArray) -> FloatArray:
        """Return one query vector for several weighted terms of a linear space: along Σ wᵢ·uᵢ, all of unit length."""
        return np.asarray(unit_rows((weights @ unit_rows(queries))[None, :]), dtype=np.float32)

    def scores(self, queries: AnyArray, stored: AnyArray) -> FloatArray:
        """Return the (queries, stored rows) matrix of scores. A score does not depend on the rows beside it."""
        if self.is_hash_codes:
            # Imported lazily: few spaces have codes.
            from diptych.codes import hamming_distances

            return -hamming_distances(queries, stored).astype(np.float32)
        if self.metric is None:
            return self.space.compare(queries, stored.astype(np.float32), self.direction)
        scores = np.empty((len(queries), len(stored)), dtype=np.float32)
        divisor = stored.shape[1] if self.space.name == "covariance" else 1
        for rows in row_blocks(len(stored), ENTRIES_AT_ONCE // max(1, stored.shape[1])):
            block = stored[rows].astype(np.float32)
            for number, query in enumerate(np.asarray(queries, dtype=np.float32)):
                if self.is_linear:
                    # A product of matrices would round differently for other numbers of rows.
                    scores[number, rows] = np.einsum("gd,d->g", block, query) / divisor
                else:
                    # Differences instead of |q|² − 2qg + |g|²: far from the origin float32 cannot afford that.
                    difference = block - query
                    scores[number, rows] = -np.einsum("gd,gd->g", difference, difference)
        return scores
