"""The labels that a ConSE point is made of."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.models import ConSE, CrossModalModel
from diptych.retriever.explaining.contribution import Contribution
from diptych.retriever.explaining.explainer import Explainer
from diptych.retriever.explaining.label_names import label_names
from diptych.retriever.explaining.label_shares import label_shares
from diptych.retriever.explaining.linear_parts import is_linear, linear_parts
from diptych.retriever.explaining.match import Match
from diptych.retriever.explaining.phrases import listed, per_cent
from diptych.retriever.explaining.subject import Subject
from diptych.retriever.explaining.view import View, ViewKind

_NAMED = 3


class CombinedLabels(Explainer):
    """For ConSE: the likeliest labels of a picture, and how near each one's vector is to the other side.

    A picture is f = Σ_y s_y v(y) with the shares s_y of its likeliest labels, so that its inner product with a text t
    is Σ_y s_y v(y)·t: the terms of this sum, divided by the same lengths as the score, are the contributions. Between
    two pictures f and g a label gets ½(s_y v(y)·g + r_y v(y)·f), which also sums to the score.

    Norouzi et al., "Zero-shot learning by convex combination of semantic embeddings", ICLR 2014.
    """

    kind: ClassVar[ViewKind] = "labels"

    def reads_model(self, model: CrossModalModel) -> bool:
        """Say whether pictures are mixtures of labels."""
        return isinstance(model, ConSE)

    def views(self, match: Match) -> list[View]:
        """Return the labels of the picture, or of both pictures."""
        model = match.retriever.model_
        pictures = [side for side in (match.query, match.answer) if side.side == "image"]
        features = [side.features for side in pictures if side.features is not None]
        if not isinstance(model, ConSE) or not pictures or len(features) < len(pictures):
            return []
        shares = {id(side): label_shares(model, row) for side, row in zip(pictures, features, strict=True)}
        rows = np.flatnonzero(sum(shares.values()) > 0)
        if not len(rows):
            return []
        added = np.mean([self._added(match, side, model, shares[id(side)][rows], rows) for side in pictures], axis=0)
        names = label_names(match.retriever.image_encoder_, len(model.label_vectors_))
        bars = [
            Contribution(
                names[row],
                _value(match, match.query, model, int(row)),
                _value(match, match.answer, model, int(row)),
                float(contribution),
            )
            for row, contribution in zip(rows, added, strict=True)
        ]
        bars.sort(key=lambda bar: -abs(bar.contribution))
        exact = is_linear(match.space)
        return [
            View(self.kind, "Labels", _sentence(match, bars), tuple(bars), _note(match, exact), 0.0 if exact else None)
        ]

    @staticmethod
    def _added(match: Match, picture: Subject, model: ConSE, shares: FloatArray, rows: IntArray) -> FloatArray:
        parts = shares[:, None] * model.label_vectors_[rows]
        if is_linear(match.space):
            other = linear_parts(match.space, match.direction, match.beside(picture).point)
            return np.asarray(linear_parts(match.space, match.direction, parts) @ other[0])
        # Elsewhere a label counts what the score loses when the others stand for the picture alone.
        rest = np.maximum(shares.sum() - shares, 0)[:, None]
        without: AnyArray = np.where(rest > 0, (parts.sum(axis=0) - parts) / np.where(rest > 0, rest, 1), 0)
        return match.score - match.scores_instead(picture, without.astype(picture.point.dtype))


def _value(match: Match, side: Subject, model: ConSE, row: int) -> float:
    """Return the label's probability in a picture, or the score of its vector with a text."""
    if side.features is not None and side.side == "image":
        return float(side.features[0, row])
    vector = model.label_vectors_[row : row + 1].astype(side.point.dtype)
    return float(match.space.compare(side.point, vector, "text_query")[0, 0])


def _sentence(match: Match, bars: list[Contribution]) -> str:
    if match.query.side == match.answer.side:
        shared = [bar for bar in bars if min(bar.query or 0, bar.answer or 0) >= 0.01][:_NAMED]
        if shared:
            return f"Both pictures look like {listed([bar.name for bar in shared])}."
        return f"The pictures share no likely label; {bars[0].name} brings them nearest."
    probability = "answer" if match.answer.side == "image" else "query"
    best = [f"{bar.name} ({per_cent(getattr(bar, probability))})" for bar in bars[:_NAMED] if bar.contribution > 0]
    if not best:
        return "None of the labels seen in the picture is near the words."
    return f"The picture looks like {listed(best)}, which is what lies near the words."


def _note(match: Match, exact: bool) -> str:
    if exact:
        return (
            "The picture is the mean of its likeliest labels' vectors, weighted by probability; the contributions sum "
            f"to the score in the space {match.space.name}."
        )
    return "Each contribution is what the score loses when the other labels stand for the picture; they do not add up."
