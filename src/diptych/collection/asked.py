"""A query on its way through the space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.collection.asked_term import AskedTerm
from diptych.collection.contract import PointSource, SearchDirection, Side
from diptych.collection.gallery import Gallery
from diptych.collection.scoring import Scoring


@dataclass(frozen=True)
class Asked:
    """The terms of a query against one side of a collection.

    One term is compared as the space says. Several are combined: in a linear space (cosine, Pearson, covariance, dot)
    the query is the unit vector along Σ wᵢ·uᵢ over the terms' unit vectors uᵢ, in other spaces the score is the
    weighted mean Σ wᵢ·sᵢ / Σ|wᵢ| of the terms' scores sᵢ. For binary codes that mean of Hamming distances is, but for a
    constant, one real query Σ wᵢ·bᵢ against the bits of each item, where bᵢ ∈ {−1, +1} are those of the terms.

    The cosine of a combined query reads like that of a single one, so its probability is what the calibrations of the
    wanted terms' directions say of it, averaged by weight. Elsewhere, and when nothing is wanted, it is the weighted
    geometric mean of what each term says: pᵢ for a wanted term, 1 − pᵢ for an unwanted one. Words in which the encoder
    finds nothing have a probability of 0 with everything.
    """

    terms: tuple[AskedTerm, ...]
    gallery: Gallery
    target: Side
    retriever: PointSource

    @property
    def weights(self) -> FloatArray:
        """The weights of the terms."""
        return np.array([term.weight for term in self.terms])

    @cached_property
    def vector(self) -> AnyArray | None:
        """The one query vector an index can answer, or None when scores must be combined instead."""
        scoring = self.gallery.scoring
        if len(self.terms) == 1 and self.terms[0].weight > 0:
            term = self.terms[0]
            same = scoring.direction == term.direction or scoring.is_symmetric
            return scoring.asked(term.point) if same else None
        if not scoring.is_linear:
            return None
        return scoring.combined(np.vstack([scoring.asked(term.point) for term in self.terms]), self.weights)

    def scores(self, kept: AnyArray) -> FloatArray:
        """Return the combined scores of kept rows."""
        if self.vector is not None:
            return np.asarray(self.gallery.scoring.scores(self.vector, kept)[0])
        weights = self.weights
        each = np.stack([self._term_scores(term, kept) for term in self.terms])
        return np.asarray(weights @ each / np.abs(weights).sum())

    def judged(self, kept: AnyArray) -> tuple[FloatArray, FloatArray]:
        """Return the scores of kept rows, and their probabilities of relevance."""
        if not len(kept):
            return np.zeros(0), np.zeros(0)
        scores = self.scores(kept)
        wanted = [term for term in self.terms if term.weight > 0]
        if not wanted or not self.gallery.scoring.is_cosine:
            return scores, self._agreement(kept)
        if len(wanted) == 1:
            return scores, self._chance(wanted[0], scores)
        each = np.stack([self._chance(term, scores) for term in wanted])
        return scores, np.average(each, axis=0, weights=[term.weight for term in wanted])

    def _agreement(self, kept: AnyArray) -> FloatArray:
        """Return the weighted geometric mean of what each term says."""
        logarithms = np.zeros(len(kept))
        for term in self.terms:
            chance = self._chance(term, self._term_scores(term, kept))
            chance = np.clip(chance if term.weight > 0 else 1 - chance, 1e-12, 1)
            logarithms += abs(term.weight) * np.log(chance)
        return np.asarray(np.exp(logarithms / np.abs(self.weights).sum()))

    def _chance(self, term: AskedTerm, scores: FloatArray) -> FloatArray:
        if term.is_blank:
            return np.zeros(len(scores))
        direction: SearchDirection = _DIRECTIONS[term.side, self.target]
        return np.asarray(self.retriever.probability(scores, direction))

    def _term_scores(self, term: AskedTerm, kept: AnyArray) -> FloatArray:
        scoring = Scoring(self.gallery.scoring.space, term.direction)
        return np.asarray(scoring.scores(scoring.asked(term.point), kept)[0])


_DIRECTIONS: dict[tuple[Side, Side], SearchDirection] = {
    ("text", "image"): "text_to_image",
    ("image", "text"): "image_to_text",
    ("image", "image"): "image_to_image",
    ("text", "text"): "text_to_text",
}
