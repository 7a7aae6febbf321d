"""A point as the sum of what features with a name bring."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders import ColourEdgeHistograms, Encoder, LdaTopics, SiftWords, Tfidf, TfidfTopics
from diptych.encoders.text.tfidf_weighting import weighted_counts
from diptych.encoders.text.words import count_words
from diptych.retriever.explaining.histogram_names import histogram_names
from diptych.retriever.explaining.linear_side import LinearSide

_TOPIC_WORDS = 3
_ABSENT = "the average text"
_CONSTANT = "the average"


@dataclass(frozen=True, eq=False)
class PointParts:
    """Names, how strong each is, and the vectors they bring; the vectors sum to the point before normalisation."""

    names: list[str]
    values: FloatArray
    vectors: FloatArray


@singledispatch
def point_parts(encoder: Encoder, words: str | None, features: FloatArray, side: LinearSide) -> PointParts | None:
    """Return the named parts of a point from its words and features, or None where features have no names."""
    del encoder, words, features, side
    return None


@point_parts.register
def _(encoder: ColourEdgeHistograms, words: str | None, features: FloatArray, side: LinearSide) -> PointParts | None:
    names = histogram_names(encoder)
    # One name for a bin wherever it lies in the picture: cells follow each other, each with all bins.
    vectors = _centred(features, side).reshape(-1, len(names), side.rows.shape[1]).sum(axis=0)
    cells = encoder.levels[0] ** 2
    values = features[0, : cells * len(names)].reshape(cells, len(names)).mean(axis=0)
    return _with_constant(names, np.asarray(values), vectors, side)


@point_parts.register
def _(encoder: SiftWords, words: str | None, features: FloatArray, side: LinearSide) -> PointParts | None:
    noun = "visual word" if encoder.n_topics is None else "visual topic"
    names = [f"{noun} {number}" for number in range(features.shape[1])]
    return _with_constant(names, features[0], _centred(features, side), side)


@point_parts.register
def _(encoder: LdaTopics, words: str | None, features: FloatArray, side: LinearSide) -> PointParts | None:
    leading = np.argsort(-encoder.components_, axis=1)[:, :_TOPIC_WORDS]
    names = [f"topic {', '.join(encoder.vocabulary_[word] for word in topic)}" for topic in leading]
    return _with_constant(names, features[0], _centred(features, side), side)


@point_parts.register
def _(encoder: Tfidf, words: str | None, features: FloatArray, side: LinearSide) -> PointParts | None:
    return _of_words(encoder, words, features, side, side.rows)


@point_parts.register
def _(encoder: TfidfTopics, words: str | None, features: FloatArray, side: LinearSide) -> PointParts | None:
    return _of_words(encoder, words, features, side, encoder.components_.T @ side.rows)


def _of_words(
    encoder: Tfidf | TfidfTopics, words: str | None, features: FloatArray, side: LinearSide, of_words: FloatArray
) -> PointParts | None:
    """Return one part for each word of the text, and one for what the words are compared with."""
    if words is None or side.scaling == "hellinger":
        # A root of a sum is no sum of roots.
        return None
    weights = weighted_counts(count_words([words], encoder.vocabulary_, encoder.pipeline), encoder.idf_)
    present = side.scaled(features) @ side.rows
    vectors = np.asarray(weights.data[:, None] * of_words[weights.indices])
    # Rows are scaled to unit length after the words were summed: one factor for all of them.
    squares = float((vectors.sum(axis=0) ** 2).sum())
    vectors *= float(present @ vectors.sum(axis=0)) / squares if squares > 0 else 0.0
    names = [encoder.vocabulary_[word] for word in weights.indices]
    rest = side.of_nothing
    if not rest.any():
        return PointParts(names, np.asarray(weights.data), vectors)
    return PointParts([*names, _ABSENT], np.append(weights.data, -1.0), np.vstack([vectors, rest]))


def _centred(features: FloatArray, side: LinearSide) -> FloatArray:
    return np.asarray((side.scaled(features) - side.mean)[:, None] * side.rows)


def _with_constant(names: list[str], values: FloatArray, vectors: FloatArray, side: LinearSide) -> PointParts:
    if not side.constant.any():
        return PointParts(names, values, vectors)
    return PointParts([*names, _CONSTANT], np.append(values, 1.0), np.vstack([vectors, side.constant]))
