"""The pairs of features that a linear score is made of."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.models import CrossModalModel
from diptych.retriever.explaining.contribution import Contribution
from diptych.retriever.explaining.explainer import Explainer
from diptych.retriever.explaining.linear_parts import is_linear, linear_parts
from diptych.retriever.explaining.linear_side import linear_side
from diptych.retriever.explaining.match import Match
from diptych.retriever.explaining.phrases import counted, quoted
from diptych.retriever.explaining.point_parts import PointParts, point_parts
from diptych.retriever.explaining.subject import Subject
from diptych.retriever.explaining.view import View, ViewKind

_MOST_PAIRS = 10


class FeaturePairs(Explainer):
    """For linear projections of features that have names: which word goes with which colour, topic or visual word.

    With projections A and B the score before normalisation is the bilinear form

        s = Σ_ij x_i W_ij t_j,    W = A Bᵀ

    of centred features; each term, divided by the same lengths as the score, is one pair. The pairs sum to the score.
    """

    kind: ClassVar[ViewKind] = "pairs"

    def reads_model(self, model: CrossModalModel) -> bool:
        """Say no: whether features have names depends on the encoders alone."""
        del model
        return False

    def views(self, match: Match) -> list[View]:
        """Return the pairs that count most."""
        asked, found = self._parts(match, match.query), self._parts(match, match.answer)
        if asked is None or found is None or not is_linear(match.space):
            return []
        added = (
            linear_parts(match.space, match.direction, asked.vectors)
            @ linear_parts(match.space, match.direction, found.vectors).T
        )
        if not added.any():
            return []
        order = np.argsort(-np.abs(added), axis=None, kind="stable")[:_MOST_PAIRS]
        bars = tuple(
            Contribution(
                f"{asked.names[first]} × {found.names[second]}",
                float(asked.values[first]),
                float(found.values[second]),
                float(added[first, second]),
            )
            for first, second in zip(*np.unravel_index(order, added.shape), strict=True)
        )
        rest = float(added.sum() - sum(bar.contribution for bar in bars))
        note = (
            f"The other {counted(added.size - len(bars), 'pair')} add {rest:+.3f}. All pairs sum to the score in the "
            f"space {match.space.name}: a sum of products of features, divided by the lengths of the two points."
        )
        return [View(self.kind, "Pairs of features", _sentence(bars), bars, note, rest)]

    @staticmethod
    def _parts(match: Match, subject: Subject) -> PointParts | None:
        side = linear_side(match.retriever.model_, subject.side)
        if side is None or subject.features is None:
            return None
        retriever = match.retriever
        encoder = retriever.image_encoder_ if subject.side == "image" else retriever.text_encoder_
        return point_parts(encoder, subject.words, subject.features, side)


def _sentence(bars: tuple[Contribution, ...]) -> str:
    best = max(bars, key=lambda bar: bar.contribution)
    if best.contribution <= 0:
        return "No pair of features speaks for this answer."
    first, second = best.name.split(" × ")
    return f"{quoted(first)} with {quoted(second)} counts most."
