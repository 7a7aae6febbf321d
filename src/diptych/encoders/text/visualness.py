"""How much of a query can be seen in pictures."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.text.query_words import query_words
from diptych.encoders.text.visual_phrases import VisualPhrases, imagenet_phrases
from diptych.encoders.text.visual_query import VisualQuery
from diptych.encoders.text.visual_span import VisualSpan
from diptych.errors import InvalidInputError


class Visualness:
    """Measures how visual a query is: the share of its words that name something with a look of its own.

    .. math:: \\text{visualness}(q) = \\frac{\\text{words of } q \\text{ in names of concepts}}{\\text{words of } q}

    This is equation 13 of Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", IEEE
    Transactions on Multimedia 2018. Words count as in :func:`clean_query`. A query is read from left to right; where
    names of concepts begin, the longest is taken and its words are visible. A word that is only part of a name, such as
    the hot of hot dog, is not. A word stands for itself, its dictionary form and what it may be the plural of; stop
    words belong to a name (trash can, jack-in-the-box) but are not counted.

    Use it to see which share of a query log a model of pictures can hope to answer, and whether it fails on what can
    be seen or on what cannot. The concepts are those of ImageNet unless told otherwise; what it lacks, such as
    celebrities and products, is added by ``extra``.

    Parameters
    ----------
    extra :
        More names, such as those :func:`read_vocabulary` reads from a file.
    concepts :
        Names to use in place of those of :func:`imagenet_concepts`, which need the package timm.

    Examples
    --------
    >>> from diptych.encoders import Visualness
    >>> visualness = Visualness()
    >>> [visualness.of(query).visualness for query in ("soccer ball", "tattoo design", "funny")]
    [1.0, 0.5, 0.0]
    >>> visualness.of("barack obama family").marked
    'barack obama [family]'
    >>> Visualness(extra=["Barack Obama"]).of("barack obama family").visualness
    1.0
    """

    def __init__(self, extra: Iterable[str] = (), *, concepts: Iterable[str] | None = None) -> None:
        known = imagenet_phrases() if concepts is None else VisualPhrases(_names(concepts, "concepts"))
        more = _names(extra, "extra")
        self._lists = [known, VisualPhrases(more)] if more else [known]

    def of(self, query: str) -> VisualQuery:
        """Return how visual a query is, and which parts of it are."""
        words = query_words(query)
        counting = [word.counts for word in words]
        spans, n_visual, place = [], 0, 0
        while place < len(words):
            length, concept = max((each.longest(words, place) for each in self._lists), key=lambda found: found[0])
            seen = sum(counting[place : place + length])
            # A name of stop words alone, such as mine, says nothing.
            if concept is not None and seen:
                spans.append(VisualSpan(words[place].start, words[place + length - 1].end, concept))
                n_visual += seen
            place += length if seen else 1
        return VisualQuery(query, sum(counting), n_visual, tuple(spans))

    def scores(self, queries: Iterable[str]) -> FloatArray:
        """Return the visualness of every query, in order."""
        if isinstance(queries, str):
            raise InvalidInputError("queries must be several strings, got one string; pass it in a list")
        return np.fromiter((self.of(query).visualness for query in queries), dtype=np.float64)


def _names(names: Iterable[str], parameter: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InvalidInputError(f"{parameter} must be several names, got one string; pass it in a list")
    return tuple(names)
