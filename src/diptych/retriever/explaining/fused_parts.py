"""How much each part of a fused model brings."""

from __future__ import annotations

from typing import ClassVar

from diptych.models import CrossModalModel, FusedModel
from diptych.retriever.explaining.contribution import Contribution
from diptych.retriever.explaining.explainer import Explainer
from diptych.retriever.explaining.inner_model import inner_model
from diptych.retriever.explaining.match import Match
from diptych.retriever.explaining.phrases import listed, quoted
from diptych.retriever.explaining.view import View, ViewKind


class FusedParts(Explainer):
    """For a fusion of models: the score is the sum of what its parts bring, weight × score / scale each."""

    kind: ClassVar[ViewKind] = "parts"

    def reads_model(self, model: CrossModalModel) -> bool:
        """Say whether the model is a fusion."""
        return isinstance(inner_model(model), FusedModel)

    def views(self, match: Match) -> list[View]:
        """Return one bar for each part, the weightiest first; they sum to the score."""
        model = inner_model(match.retriever.model_)
        if not isinstance(model, FusedModel):
            return []
        brought = model.contributions(match.query.point, match.answer.point)
        bars = [Contribution(name, None, None, float(values[0])) for name, values in brought.items()]
        bars.sort(key=lambda bar: -abs(bar.contribution))
        sentence = _sentence(match, bars)
        return [View(self.kind, "Parts of the model", sentence, tuple(bars), _note(model), remainder=0.0)]


def _sentence(match: Match, bars: list[Contribution]) -> str:
    told = [
        f"{quoted(bar.name)} {'brings' if bar.contribution >= 0 else 'takes away'} {abs(bar.contribution):.2f}"
        for bar in bars
        if bar.contribution != 0
    ]
    if not told:
        return f"No part of the model says anything about this {match.answer_noun}."
    return f"Of the score {match.score:.2f}, {listed(told)}."


def _note(model: FusedModel) -> str:
    weights = [f"{name} {weight:.2f}" for name, weight in zip(model.part_names_, model.weights_, strict=True)]
    return f"The model is a sum of parts with the weights {listed(weights)}; the bars add up to the score."
