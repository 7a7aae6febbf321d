"""How much of a query can be seen in pictures: names of visible things, found in the words of queries."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray
from diptych.encoders.text.word_pipeline import QueryWord, lemma, query_words
from diptych.errors import InvalidInputError

_CONCEPTS = Path(__file__).with_name("imagenet_concepts.txt.gz")
_SHORTEST = 4
# Under this key, which is no word, a node keeps the phrase that ends there.
_PHRASE_END = ""


class VisualSpan(NamedTuple):
    """Where in a query a concept is named: ``query[start:end]``.

    >>> from diptych.encoders import Visualness
    >>> Visualness(concepts=["dog"]).of("two dogs").spans
    (VisualSpan(start=4, end=8, concept='dog'),)
    """

    start: int
    """Where it begins, in characters."""
    end: int
    """Where it ends."""
    concept: str
    """The name of the concept as the vocabulary writes it."""


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


@lru_cache(maxsize=1)
def imagenet_concepts() -> tuple[str, ...]:
    """Return the words and phrases of the 21,841 concepts of ImageNet, each once.

    ImageNet (Deng et al., "ImageNet: a large-scale hierarchical image database", CVPR 2009) has pictures of concepts
    of WordNet, and each concept has one or more names.

    Use it as the vocabulary of :class:`Visualness`, which does so by default, or as words to label pictures with.

    Examples
    --------
    >>> from diptych.encoders import imagenet_concepts
    >>> len(imagenet_concepts()), "soccer ball" in imagenet_concepts(), "funny" in imagenet_concepts()
    (37006, True, False)
    """
    lines = gzip.decompress(_CONCEPTS.read_bytes()).decode("utf-8").splitlines()
    return tuple(line for line in lines if not line.startswith("#"))


# A list of words lacks the plurals of rare ones, and knows some only as verbs: leaves, shelves.
_PLURALS = (
    ("ves", "f"),
    ("ves", "fe"),
    ("ies", "y"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("s", ""),
)


@lru_cache(maxsize=1)
def concept_names() -> frozenset[str]:
    """Return the names of `imagenet_concepts` in lower case."""
    return frozenset(name.lower() for name in imagenet_concepts())


def named_concept(name: str) -> str | None:
    """Return the concept whose name a lower-case word or phrase is, or seems to be the plural of, else None.

    >>> from diptych.encoders.text.visualness import named_concept
    >>> [named_concept(name) for name in ("dog", "dining tables", "benches", "funny")]
    ['dog', 'dining table', 'bench', None]
    """
    singulars = (name.removesuffix(ending) + rest for ending, rest in _PLURALS if name.endswith(ending))
    return next((form for form in (name, *singulars) if form in concept_names()), None)


@lru_cache(maxsize=1 << 18)
def visual_forms(word: str) -> tuple[str, ...]:
    """Return a lower-case word itself, its dictionary form, and what it may be the plural of; each once."""
    forms = [word, lemma(word)]
    if len(word) >= _SHORTEST and not word.endswith("ss"):
        forms += [word.removesuffix(ending) + singular for ending, singular in _PLURALS if word.endswith(ending)]
    return tuple(dict.fromkeys(forms))


class VisualPhrases:
    """A list of phrases as a tree of words: the work at a word does not grow with the number of phrases.

    A phrase is kept as it is written. One of several words is also found with each word in the singular; a single word
    is not, because what it is a form of may be no concept: elder, the tree, is in ImageNet, old is not.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self._root: dict[str, Any] = {}
        for phrase in phrases:
            words = [word.word for word in query_words(phrase.replace("_", " "))]
            for spelling in _spellings(words):
                self._add(spelling, phrase)

    def _add(self, words: Sequence[str], phrase: str) -> None:
        node = self._root
        for word in words:
            node = node.setdefault(word, {})
        if words:
            node.setdefault(_PHRASE_END, phrase)

    def longest(self, words: Sequence[QueryWord], start: int) -> tuple[int, str | None]:
        """Return how many words the longest phrase at ``start`` has, and the phrase; 0 and None where there is none."""
        best: tuple[int, str | None] = (0, None)
        nodes = [self._root]
        for length, word in enumerate(words[start:], 1):
            nodes = [node[form] for node in nodes for form in visual_forms(word.word) if form in node]
            if not nodes:
                break
            ending = next((node[_PHRASE_END] for node in nodes if _PHRASE_END in node), None)
            if ending is not None:
                best = (length, ending)
        return best


def _spellings(words: Sequence[str]) -> Iterable[Sequence[str]]:
    if len(words) < 2 or not any(word.endswith("s") for word in words):
        return [words]
    return product(*(visual_forms(word) if word.endswith("s") else (word,) for word in words))


@lru_cache(maxsize=1)
def imagenet_phrases() -> VisualPhrases:
    """Return the names of ImageNet's concepts as a tree, made once."""
    return VisualPhrases(imagenet_concepts())


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
        More names.
    concepts :
        Names to use in place of those of :func:`imagenet_concepts`.

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
        if isinstance(extra, str) or isinstance(concepts, str):
            raise InvalidInputError("extra and concepts must be several names, got one string; pass it in a list")
        known = imagenet_phrases() if concepts is None else VisualPhrases(concepts)
        more = tuple(extra)
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


def visual_share(visualness: ArrayLike, threshold: float, clicks: ArrayLike | None = None) -> float:
    """Return the share of queries that are visual: those whose visualness is strictly above a threshold t.

    .. math:: \\frac{\\sum_{q:\\,\\text{visualness}(q) > t} \\text{click}_q}{\\sum_{q} \\text{click}_q}

    With ``clicks``, how often each query was clicked, it is equation 14 of Dong et al., "Cross-media similarity
    evaluation for web image retrieval in the wild", 2018; without, every query weighs the same. A share that is larger
    with clicks than without says that visual queries are answered better. NaN where there is nothing to share.

    >>> from diptych.encoders import visual_share
    >>> visual_share([0.0, 0.5, 1.0], 0.5), visual_share([0.0, 0.5, 1.0], 0.5, clicks=[1, 1, 6])
    (0.3333333333333333, 0.75)
    """
    scores = np.asarray(visualness, dtype=np.float64)
    weights = np.ones_like(scores) if clicks is None else np.asarray(clicks, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != weights.shape:
        raise InvalidInputError(f"each query needs a visualness and clicks, got {scores.shape} and {weights.shape}")
    if not (weights >= 0).all():
        raise InvalidInputError("clicks must be numbers that are not negative")
    total = float(weights.sum())
    return float(weights[scores > threshold].sum()) / total if total > 0 else float("nan")
