"""What the models share that answer by the clicks of similar queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.encoders.text.clean_query import clean_query
from diptych.models.clicks.click_scale import scaled_clicks
from diptych.models.clicks.logged_clicks import LoggedClickModel
from diptych.models.clicks.recent_answers import RecentAnswers
from diptych.models.clicks.weighted_images import WeightedImages
from diptych.models.parameters import check_count, check_number

# A service hears the same queries over and over. Long lists are made again: together they would fill the memory.
_REMEMBERED, _LONGEST_REMEMBERED = 4096, 1000
# Pictures added up at a time.
_BLOCK_ROWS = 8192


class NeighbourQueryModel(LoggedClickModel):
    """A model with the parameters ``n_neighbours`` and ``min_similarity``: a query is what its neighbours clicked.

    Neighbours are the ``n_neighbours`` log queries of the largest Jaccard similarity, at least ``min_similarity``. A
    query that is in the log itself, as a set of words, is its own and only neighbour. The list of weighted pictures of
    a query is remembered.
    """

    n_neighbours: int
    min_similarity: float

    def answers(self, query: str) -> bool:
        """Tell whether a similar query was ever clicked; all scores are 0 otherwise."""
        self._check_fitted()
        return len(self._clicked(query).rows) > 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_neighbours", self.n_neighbours)
        check_number("min_similarity", self.min_similarity, low=0, high=1)

    def _neighbours(self, query: str) -> tuple[IntArray, FloatArray]:
        found, similarities = self._sets.nearest(clean_query(query), self.n_neighbours, self.min_similarity)
        if len(found) and similarities[0] == 1:
            return found[:1], similarities[:1]
        return found, similarities

    def _clicked(self, query: str) -> WeightedImages:
        """Return the pictures that stand for a query, from memory where it was asked before."""
        # With the parameters, which a study of their influence changes without fitting again.
        question = (query, *self.get_params(deep=False).values())
        known = self._remembered.get(question)
        if known is None:
            known = self._weighted_images(query)
            if len(known.rows) <= _LONGEST_REMEMBERED:
                self._remembered.keep(question, known)
        return known

    def _weighted_images(self, query: str) -> WeightedImages:
        """Return the pictures of all neighbours, weighted by Σ_j Jaccard(q, q_j)·log click_ij."""
        found, similarities = self._neighbours(query)
        return WeightedImages.added([self._clicks_of(number) for number in found], similarities)

    def _clicks_of(self, number: int) -> WeightedImages:
        """Return the clicked pictures of a log query and the logarithms of their clicks."""
        entries = slice(self.click_offsets_[number], self.click_offsets_[number + 1])
        return WeightedImages(self.clicked_images_[entries], scaled_clicks(self.clicks_[entries], self.clicks))

    def _weighted_sums(self, queries: Sequence[str]) -> FloatArray:
        """Return Σ weight·x/‖x‖ over the pictures that stand for each query; zero where there are none."""
        points = np.zeros((len(queries), self.images_.shape[1]))
        for row, query in enumerate(queries):
            clicked = self._clicked(query)
            for block in row_blocks(len(clicked.rows), _BLOCK_ROWS):
                points[row] += clicked.weights[block] @ self.images_[clicked.rows[block]].astype(np.float64)
        return points.astype(np.float32)

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("_remembered", None)

    @cached_property
    def _remembered(self) -> RecentAnswers[WeightedImages]:
        return RecentAnswers(_REMEMBERED)
