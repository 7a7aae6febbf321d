"""A query and what of it can be seen."""

from __future__ import annotations

from typing import NamedTuple

from diptych.encoders.text.visual_span import VisualSpan


class VisualQuery(NamedTuple):
    """How visual a query is, and why; :meth:`Visualness.of` returns it.

    >>> from diptych.encoders import Visualness
    >>> found = Visualness(concepts=["dog", "cat"]).of("dog and cat quotes")
    >>> found.n_visual, found.n_words, round(found.visualness, 3), found.marked
    (2, 3, 0.667, '[dog] and [cat] quotes')
    """

    query: str
    """The query as it was typed."""
    n_words: int
    """How many of its words count."""
    n_visual: int
    """How many of these are part of a name of something visible."""
    spans: tuple[VisualSpan, ...]
    """Where these names stand, from left to right."""

    @property
    def visualness(self) -> float:
        """The share of the words that are visible, 0 to 1; 0 where no word counts."""
        return self.n_visual / self.n_words if self.n_words else 0.0

    @property
    def marked(self) -> str:
        """The query with square brackets around what is visible."""
        pieces, end = [], 0
        for span in self.spans:
            pieces += [self.query[end : span.start], "[", self.query[span.start : span.end], "]"]
            end = span.end
        return "".join([*pieces, self.query[end:]])
