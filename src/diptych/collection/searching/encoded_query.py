"""Encoded queries: the terms of a query as points, the cache of their embeddings, their scores and probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.collection.retriever_protocol import RetrieverProtocol, Side, without_disk_cache
from diptych.collection.store.scoring import Scoring
from diptych.space import Direction, SearchDirection, on_one_scale

MAX_REMEMBERED = 1024

RetrieverT = TypeVar("RetrieverT", bound=RetrieverProtocol)


@dataclass(frozen=True)
class EncodedTerm:
    """A term of a query as a point: one row, its weight, and the side it comes from.

    The encoder finds nothing in ``is_unknown`` words, whose scores are no evidence of a match. ``outputs`` are the real
    numbers that a code is the signs of, where they are asked for. ``is_short`` is a word or two, which fit many
    pictures, each with a lower score.
    """

    point: AnyArray
    weight: float
    side: Side
    is_unknown: bool = False
    outputs: FloatArray | None = None
    is_short: bool = False

    @property
    def direction(self) -> Direction:
        """The direction of the space; only spaces that treat the sides differently look at it."""
        return "image_query" if self.side == "image" else "text_query"


class QueryEmbedding(NamedTuple):
    """The point of some words, whether the retriever knows none of them, and the features the point was made from."""

    point: AnyArray
    is_unknown: bool
    features: FloatArray


class QueryEmbeddingCache:
    """Turns the words of queries into points and remembers the last ones, in memory alone: they are private."""

    def __init__(self, retriever: RetrieverProtocol) -> None:
        private = without_disk_cache(retriever)

        @lru_cache(MAX_REMEMBERED)
        def point(words: str) -> QueryEmbedding:
            features = query_features(private, [words])
            return QueryEmbedding(private.texts_to_points(features), not np.any(features), features)

        self.point = point


def query_features(retriever: RetrieverProtocol, texts: Sequence[str]) -> FloatArray:
    """Return the features of texts to search with; some retrievers read these otherwise than captions."""
    encode: Callable[[Sequence[str]], FloatArray] | None = getattr(retriever, "query_features", None)
    return without_disk_cache(retriever).text_features(texts) if encode is None else encode(texts)


class TellsShortQueries(Protocol):
    """A retriever with probabilities of their own for a word or two that look for pictures, as `Retriever` has them."""

    def is_short_query(self, text: str) -> bool:
        """Return whether a text is such a query."""

    def probability(self, scores: FloatArray, direction: SearchDirection, *, is_short: bool = False) -> FloatArray:
        """Return the probability of relevance of each score."""

    def cutoff_among(self, count: int, *, is_short: bool = False, is_joined: bool = False) -> float:
        """Return the probability that counts as a match among so many items."""

    def cutoff_of(self, text: AnyArray, count: int, *, is_short: bool = False) -> float:
        """Return that of one text, given by its point."""

    def line_share(self, *, is_short: bool = False) -> float:
        """Return the share of the best answer's probability above which an answer to a text is good."""


@dataclass(frozen=True)
class EncodedQuery:
    """The terms of a query against one side of a collection.

    Several terms are combined: in a linear space (cosine, Pearson, covariance, dot) the query is the unit vector along
    Σ vᵢ·uᵢ over the terms' unit vectors uᵢ, where vᵢ are the weights wᵢ with pictures and words brought to one scale by
    the slopes of their calibrations, in other spaces the score is the mean Σ wᵢ·sᵢ / Σ|wᵢ| of the terms' scores.

    The cosine of terms of one side reads like that of a single one, so its probability is what the calibration of the
    wanted terms' direction says of it. The score of pictures and words together, in any linear space, reads like
    neither: the logarithms of their odds, αᵢ + βᵢ·sᵢ, are averaged by weight, less |wᵢ|·βᵢ·sᵢ for what is unwanted, so
    that a better score is still more probable. Otherwise, and when nothing is wanted, the probability is what the terms
    say together: the geometric mean of pᵢ, by weight, over the wanted ones, times 1 − pᵢ of the unwanted ones to the
    power of their share of that weight. What shows two things shows each less clearly than what shows it alone, so
    joined words may have a cut-off of their own.
    """

    terms: tuple[EncodedTerm, ...]
    scoring: Scoring
    target: Side
    retriever: RetrieverProtocol

    @property
    def wanted(self) -> list[EncodedTerm]:
        """The terms that are not asked to be unlike."""
        return [term for term in self.terms if term.weight > 0]

    @property
    def weights(self) -> FloatArray:
        """The weights of the terms."""
        return np.array([term.weight for term in self.terms])

    @cached_property
    def vector(self) -> AnyArray | None:
        """The one query vector an index can answer, or None when scores must be combined instead."""
        scoring, term = self.scoring, self.terms[0]
        if len(self.terms) == 1 and term.weight > 0:
            same = scoring.direction == term.direction or scoring.is_symmetric
            return scoring.query_vectors(term.point) if same else None
        if not scoring.is_linear:
            return None
        vectors = np.vstack([scoring.query_vectors(term.point) for term in self.terms])
        slopes = [self._slope(term) for term in self.terms]
        return scoring.combined(vectors, on_one_scale(self.weights, vectors, slopes))

    def scores(self, stored: AnyArray) -> FloatArray:
        """Return the combined scores of stored rows."""
        if self.vector is not None:
            return np.asarray(self.scoring.scores(self.vector, stored)[0])
        each = np.stack([self._term_scores(term, stored) for term in self.terms])
        return np.asarray(self.weights @ each / np.abs(self.weights).sum())

    def scores_and_probabilities(self, stored: AnyArray) -> tuple[FloatArray, FloatArray]:
        """Return the scores of stored rows, and their probabilities of relevance."""
        if not len(stored):
            return np.zeros(0), np.zeros(0)
        scores, wanted = self.scores(stored), self.wanted
        if len(self.terms) == 1 and wanted:
            return scores, self._probability(wanted[0], scores)
        if self._pools_odds:
            return scores, self._pooled_odds(stored)
        if self._compares_each:
            return scores, self._agreement(stored)
        each = np.stack([self._probability(term, scores) for term in wanted])
        return scores, np.average(each, axis=0, weights=[term.weight for term in wanted])

    def cutoff_among(self, count: int) -> float:
        """Return the probability below which the best answer among so many items is no good match."""
        wanted = self.wanted
        if self.target == "text" or not wanted or self._pools_odds or not hasattr(self.retriever, "is_short_query"):
            # Retrievers of one's own may have one cut-off for every number of items.
            among: Callable[[int], float] | None = getattr(self.retriever, "cutoff_among", None)
            return self.retriever.cutoff if among is None else among(count)
        retriever = cast(TellsShortQueries, self.retriever)
        if len(self.terms) == 1 and wanted[0].side == "text" and hasattr(retriever, "cutoff_of"):
            return retriever.cutoff_of(wanted[0].point, count, is_short=self._is_short(wanted[0]))
        is_joined = len(wanted) > 1 and self._compares_each and all(map(self._is_short, wanted))
        each = [retriever.cutoff_among(count, is_short=self._is_short(term), is_joined=is_joined) for term in wanted]
        if len(set(each)) == 1:
            return each[0]
        weights = [term.weight for term in wanted]
        if self._compares_each:
            return float(np.exp(np.average(np.log(each), weights=weights)))
        return float(np.average(each, weights=weights))

    def line(self, best: float, cutoff: float) -> float:
        """Return the probability above which answers are good, given that of the best one and the cut-off.

        Where there is a match at all, what is a fair share as probable as the best answer to a text counts as one, too:
        how probable good answers are differs from query to query.
        """
        texts = [term for term in self.wanted if term.side == "text"]
        if best < cutoff or self.target == "text" or len(texts) < len(self.wanted) or not texts:
            return cutoff
        if not hasattr(self.retriever, "line_share"):
            return cutoff
        retriever = cast(TellsShortQueries, self.retriever)
        return best * min(retriever.line_share(is_short=self._is_short(term)) for term in texts)

    @property
    def _pools_odds(self) -> bool:
        return self.scoring.is_linear and len({term.side for term in self.wanted}) == 2

    @property
    def _compares_each(self) -> bool:
        return not self.wanted or not self.scoring.is_cosine

    def _pooled_odds(self, stored: AnyArray) -> FloatArray:
        """Return the probability whose logarithm of odds is the weighted mean of what each wanted term says."""
        # Imported lazily: most searches have one term.
        from scipy.special import expit, logit

        known = [term for term in self.terms if not term.is_unknown]
        asked = sum(term.weight for term in self.terms if term.weight > 0)
        answered = sum(term.weight for term in known if term.weight > 0)
        if not answered:
            return np.zeros(len(stored))
        logits = np.zeros(len(stored))
        for term in known:
            logits += term.weight * self._slope(term) * self._term_scores(term, stored)
            if term.weight > 0:
                logits += term.weight * logit(self.retriever.probability(np.zeros(1), self._direction(term)))
        # Unknown words say no, as they do among words.
        return np.asarray(expit(logits / answered) * (answered / asked))

    def _agreement(self, stored: AnyArray) -> FloatArray:
        """Return the geometric mean of the probabilities of all terms; negative terms only lower it."""
        logarithms = np.zeros(len(stored))
        for term in self.terms:
            probability = self._probability(term, self._term_scores(term, stored))
            probability = np.clip(probability if term.weight > 0 else 1 - probability, 1e-12, 1)
            logarithms += abs(term.weight) * np.log(probability)
        asked = [term.weight for term in self.wanted] or np.abs(self.weights)
        return np.asarray(np.exp(logarithms / np.sum(asked)))

    def _probability(self, term: EncodedTerm, scores: FloatArray) -> FloatArray:
        if term.is_unknown:
            return np.zeros(len(scores))
        if self._is_short(term):
            short = cast(TellsShortQueries, self.retriever)
            return np.asarray(short.probability(scores, "text_to_image", is_short=True))
        return np.asarray(self.retriever.probability(scores, self._direction(term)))

    def _is_short(self, term: EncodedTerm) -> bool:
        return term.is_short and self.target == "image"

    def _slope(self, term: EncodedTerm) -> float:
        return self.retriever.score_slope(self._direction(term))

    def _direction(self, term: EncodedTerm) -> SearchDirection:
        return cast(SearchDirection, f"{term.side}_to_{self.target}")

    def _term_scores(self, term: EncodedTerm, stored: AnyArray) -> FloatArray:
        scoring = Scoring(self.scoring.space, term.direction)
        return np.asarray(scoring.scores(scoring.query_vectors(term.point), stored)[0])
