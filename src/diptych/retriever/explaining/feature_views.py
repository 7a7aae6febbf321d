"""Explanations by features: the pairs of words and picture features that a linear score is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import ClassVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders import ColourEdgeHistograms, Encoder, LdaTopics, SiftWords, Tfidf, TfidfTopics
from diptych.encoders.text.tfidf import count_words, weighted_counts
from diptych.errors import counted
from diptych.models import CrossModalModel, LinearRegression, Preprocessed, SharedSpace
from diptych.models.base import LinearProjectionModel
from diptych.models.preprocessed import RowScaling, scale_rows
from diptych.retriever.explaining.explanation import Contribution, View, ViewKind, quoted
from diptych.retriever.explaining.match import Explainer, Match, Subject, SubjectSide, is_linear, linear_parts

# One every 30 degrees, all around.
_WARM = ("red", "orange", "yellow", "lime", "green", "sea green")
_COLD = ("cyan", "azure", "blue", "violet", "magenta", "pink", "red")
_HUES = {30 * place: name for place, name in enumerate(_WARM + _COLD)}
_GREYS = ("black", "dark grey", "light grey", "white")
_HEIGHTS = ("dark", "mid", "bright")


def histogram_names(encoder: ColourEdgeHistograms) -> list[str]:
    """Return the names of the bins of one cell, in the order of the features.

    >>> names = histogram_names(ColourEdgeHistograms())
    >>> names[:3], names[24:28], names[-1]
    (['dark red', 'mid red', 'bright red'], ['black', 'dark grey', 'light grey', 'white'], 'no edges')
    """
    heights = [_place(number, encoder.brightness_bins, _HEIGHTS) for number in range(encoder.brightness_bins)]
    hues = [_hue(360 * number / encoder.hue_bins) for number in range(encoder.hue_bins)]
    colours = [f"{height} {hue}" for hue in hues for height in heights]
    shades = [f"{_place(number, encoder.grey_bins, ())} grey" for number in range(encoder.grey_bins)]
    greys = _GREYS if encoder.grey_bins == len(_GREYS) else shades
    edges = [_edge(180 * number / encoder.edge_bins) for number in range(encoder.edge_bins)]
    return [*colours, *greys, *edges, "no edges"]


def _hue(angle: float) -> str:
    nearest = min(_HUES, key=lambda known: abs(known - angle))
    return _HUES[nearest] if abs(nearest - angle) <= 15 else f"hue {angle:.0f}°"


def _place(number: int, bins: int, words: tuple[str, ...]) -> str:
    return words[number] if bins == len(words) else f"{100 * number / max(1, bins - 1):.0f} % bright"


def _edge(gradient: float) -> str:
    # Brightness changes across an edge, so the edge runs at a right angle to the gradient.
    special = {0.0: "upright edges", 90.0: "level edges"}
    return special.get(gradient, f"edges at {(90 - gradient) % 180:.0f}°")


@dataclass(frozen=True, eq=False)
class LinearSide:
    """How the features x of one side become a point: (scaled(x) − mean) @ rows + constant, before normalisation."""

    mean: FloatArray
    rows: FloatArray
    constant: FloatArray
    scaling: RowScaling = "none"

    def scaled(self, features: AnyArray) -> FloatArray:
        """Return one row of features, scaled, in float64."""
        return np.asarray(scale_rows(np.asarray(features, dtype=np.float64), self.scaling)[0])

    @property
    def of_nothing(self) -> FloatArray:
        """The point of features that are all zero."""
        return np.asarray(self.constant - self.mean @ self.rows)


@singledispatch
def linear_side(model: CrossModalModel, side: SubjectSide) -> LinearSide | None:
    """Return the linear map of a side, or None for a model that is not linear."""
    del model, side
    return None


@linear_side.register
def _(model: LinearProjectionModel, side: SubjectSide) -> LinearSide | None:
    if side == "image":
        return _plain(model.image_mean_, model.image_projection_)
    return _plain(model.text_mean_, model.text_projection_)


@linear_side.register
def _(model: LinearRegression, side: SubjectSide) -> LinearSide | None:
    is_image = side == "image"
    mean = model.image_mean_ if is_image else model.text_mean_
    as_text = model.image_to_text_ if is_image else np.eye(len(mean))
    as_image = np.eye(len(mean)) if is_image else model.text_to_image_
    halves = {"gallery": np.hstack([as_text, as_image]), "texts": as_text, "images": as_image}
    return _plain(mean, halves[model.target])


@linear_side.register
def _(model: SharedSpace, side: SubjectSide) -> LinearSide | None:
    width = model.n_image_features_ if side == "image" else model.n_text_features_
    return _plain(np.zeros(width), np.eye(width))


@linear_side.register
def _(model: Preprocessed, side: SubjectSide) -> LinearSide | None:
    inner = linear_side(model.model_, side)
    if inner is None or inner.scaling != "none":
        return None
    scaling, columns = (model.images, model.image_columns_) if side == "image" else (model.texts, model.text_columns_)
    if not columns:
        return replace(inner, scaling=scaling)
    mean, change = (np.asarray(part, dtype=np.float64) for part in columns)
    rows = change @ inner.rows if change.ndim == 2 else inner.rows / change[:, None]
    return LinearSide(mean, np.asarray(rows), inner.of_nothing, scaling)


def _plain(mean: FloatArray, rows: FloatArray) -> LinearSide:
    exact = np.asarray(rows, dtype=np.float64)
    return LinearSide(np.asarray(mean, dtype=np.float64), exact, np.zeros(exact.shape[1]))


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
    names = [f"visual word {number}" for number in range(features.shape[1])]
    return _with_constant(names, features[0], _centred(features, side), side)


@point_parts.register
def _(encoder: LdaTopics, words: str | None, features: FloatArray, side: LinearSide) -> PointParts | None:
    leading = np.argsort(-encoder.components_, axis=1)[:, :3]
    names = [f"topic {', '.join(encoder.vocabulary_[word] for word in topic)}" for topic in leading]
    return _with_constant(names, features[0], _centred(features, side), side)


@point_parts.register
def _(encoder: Tfidf | TfidfTopics, words: str | None, features: FloatArray, side: LinearSide) -> PointParts | None:
    """Return one part for each word of the text, and one for what the words are compared with."""
    if words is None or side.scaling == "hellinger":
        # A root of a sum is no sum of roots.
        return None
    weights = weighted_counts(count_words([words], encoder.vocabulary_, encoder.pipeline), encoder.idf_)
    present = side.scaled(features) @ side.rows
    of_words = encoder.components_.T @ side.rows if isinstance(encoder, TfidfTopics) else side.rows
    vectors = np.asarray(weights.data[:, None] * of_words[weights.indices])
    # Rows are scaled to unit length after the words were summed: one factor for all of them.
    squares = float((vectors.sum(axis=0) ** 2).sum())
    vectors *= float(present @ vectors.sum(axis=0)) / squares if squares > 0 else 0.0
    names = [encoder.vocabulary_[word] for word in weights.indices]
    rest = side.of_nothing
    if not rest.any():
        return PointParts(names, np.asarray(weights.data), vectors)
    return PointParts([*names, "the average text"], np.append(weights.data, -1.0), np.vstack([vectors, rest]))


def _centred(features: FloatArray, side: LinearSide) -> FloatArray:
    return np.asarray((side.scaled(features) - side.mean)[:, None] * side.rows)


def _with_constant(names: list[str], values: FloatArray, vectors: FloatArray, side: LinearSide) -> PointParts:
    if not side.constant.any():
        return PointParts(names, values, vectors)
    return PointParts([*names, "the average"], np.append(values, 1.0), np.vstack([vectors, side.constant]))


_MOST_PAIRS = 10


class FeaturePairs(Explainer):
    """For linear projections of features that have names: which word goes with which colour, topic or visual word.

    With projections A and B the score before normalisation is Σ_ij x_i W_ij t_j, W = A Bᵀ, of centred features; each
    term, divided by the same lengths as the score, is one pair. The pairs sum to the score.
    """

    kind: ClassVar[ViewKind] = "pairs"

    def views(self, match: Match) -> list[View]:
        """Return the pairs that count most."""
        asked, found = self._parts(match, match.query), self._parts(match, match.answer)
        if asked is None or found is None or not is_linear(match.space):
            return []
        rows, columns = (linear_parts(match.space, match.direction, parts.vectors) for parts in (asked, found))
        added = rows @ columns.T
        if not added.any():
            return []
        order = np.argsort(-np.abs(added), axis=None, kind="stable")[:_MOST_PAIRS]
        pairs = zip(*np.unravel_index(order, added.shape), strict=True)
        bars = tuple(_bar(asked, found, first, second, float(added[first, second])) for first, second in pairs)
        rest = float(added.sum() - sum(bar.contribution for bar in bars))
        note = (
            f"The other {counted(added.size - len(bars), 'pair')} add {rest:+.3f}. All pairs sum to the score in the "
            f"space {match.space.name}: a sum of products of features, divided by the lengths of the two points."
        )
        return [View(self.kind, "Pairs of features", _pair_sentence(bars), bars, note, rest)]

    @staticmethod
    def _parts(match: Match, subject: Subject) -> PointParts | None:
        side = linear_side(match.retriever.model_, subject.side)
        if side is None or subject.features is None:
            return None
        retriever = match.retriever
        encoder = retriever.image_encoder_ if subject.side == "image" else retriever.text_encoder_
        return point_parts(encoder, subject.words, subject.features, side)


def _bar(asked: PointParts, found: PointParts, first: int, second: int, added: float) -> Contribution:
    name = f"{asked.names[first]} × {found.names[second]}"
    return Contribution(name, float(asked.values[first]), float(found.values[second]), added)


def _pair_sentence(bars: tuple[Contribution, ...]) -> str:
    best = max(bars, key=lambda bar: bar.contribution)
    if best.contribution <= 0:
        return "No pair of features matches this answer."
    first, second = best.name.split(" × ")
    return f"{quoted(first)} with {quoted(second)} counts most."
