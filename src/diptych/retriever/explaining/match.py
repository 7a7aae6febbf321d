"""A query and an answer, ready to be explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.retriever.explaining.inner_model import inner_model
from diptych.retriever.explaining.subject import Subject
from diptych.retriever.retriever import Retriever
from diptych.space import Direction, Space


@dataclass(frozen=True, eq=False)
class Match:
    """One term of a query beside one answer."""

    retriever: Retriever
    query: Subject
    answer: Subject
    class_names: Sequence[str] | None = None

    @property
    def space(self) -> Space:
        """How the two compare."""
        return self.retriever.space

    @property
    def direction(self) -> Direction:
        """The direction of the space, which is that of the query."""
        return "image_query" if self.query.side == "image" else "text_query"

    @property
    def score(self) -> float:
        """The score of the answer."""
        return float(self.space.compare(self.query.point, self.answer.point, self.direction)[0, 0])

    @property
    def score_of_nothing(self) -> float:
        """The score that would say nothing about a match: none, or for codes as many bits as luck lets agree."""
        if self.space.name != "hamming":
            return 0.0
        n_bits = getattr(inner_model(self.retriever.model_), "n_bits", 8 * self.query.point.shape[1])
        return -float(n_bits) / 2

    @property
    def answer_noun(self) -> str:
        """What sentences call the answer."""
        return "picture" if self.answer.side == "image" else "text"

    def beside(self, subject: Subject) -> Subject:
        """Return the other side of the match."""
        return self.answer if subject is self.query else self.query

    def scores_instead(self, subject: Subject, points: AnyArray) -> FloatArray:
        """Return the scores if ``subject``, a side of the match, had been each of these points."""
        if subject is self.query:
            return np.asarray(self.space.compare(points, self.answer.point, self.direction)[:, 0])
        return np.asarray(self.space.compare(self.query.point, points, self.direction)[0])

    def text_points(self, texts: Sequence[str]) -> AnyArray:
        """Return the points of texts that nobody will ask for again, past the cache of features."""
        return self.retriever.texts_to_points(self.retriever.text_encoder_.transform(list(texts)))
