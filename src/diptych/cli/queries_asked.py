"""The queries of a log and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diptych.arrays import FloatArray


@dataclass(frozen=True)
class AskedQueries:
    """The different queries of a log, each with its counts.

    A table of clicks knows the clicks alone; the log of a service also how often each query was asked, in how many of
    these searches something was clicked, and how many had no good match.
    """

    texts: Sequence[str]
    clicks: FloatArray
    searches: FloatArray | None = None
    answered: FloatArray | None = None
    unmatched: FloatArray | None = None

    @property
    def frequency(self) -> FloatArray:
        """How often each query was asked, as far as the log knows: searches, or else clicks."""
        return self.clicks if self.searches is None else self.searches

    @property
    def success(self) -> FloatArray:
        """How well each query did: the share of its searches with a click, or else its clicks."""
        if self.searches is None or self.answered is None:
            return self.clicks
        return self.answered / self.searches
