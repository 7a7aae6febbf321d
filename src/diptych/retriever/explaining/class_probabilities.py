"""Class probabilities of query and answer, side by side."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.models import CrossModalModel
from diptych.models.semantic.classifier_pair import ClassifierPairModel
from diptych.retriever.explaining.class_names import class_names
from diptych.retriever.explaining.contribution import Contribution
from diptych.retriever.explaining.coordinate_contributions import coordinate_contributions
from diptych.retriever.explaining.explainer import Explainer
from diptych.retriever.explaining.inner_model import inner_model
from diptych.retriever.explaining.linear_parts import is_linear
from diptych.retriever.explaining.match import Match
from diptych.retriever.explaining.phrases import counted, per_cent
from diptych.retriever.explaining.view import View, ViewKind

_MOST_CLASSES = 12


class ClassProbabilities(Explainer):
    """For semantic models, whose coordinates are class probabilities: the two vectors and what each class adds.

    The view of figures 12 and 13 of Costa Pereira et al. (2014), with the exact decomposition of the score beside it.
    """

    kind: ClassVar[ViewKind] = "classes"

    def reads_model(self, model: CrossModalModel) -> bool:
        """Say whether points are class probabilities."""
        return isinstance(inner_model(model), ClassifierPairModel)

    def views(self, match: Match) -> list[View]:
        """Return the classes that add most."""
        model = inner_model(match.retriever.model_)
        if not isinstance(model, ClassifierPairModel):
            return []
        names = class_names(match, model)
        asked, found = match.query.point[0], match.answer.point[0]
        added = coordinate_contributions(match.space, match.query.point, match.answer.point, match.direction)
        order = _order(match, added, asked * found)[:_MOST_CLASSES]
        bars = tuple(Contribution(names[row], float(asked[row]), float(found[row]), float(added[row])) for row in order)
        rest = float(added.sum() - sum(bar.contribution for bar in bars))
        return [View(self.kind, "Class probabilities", _sentence(match, names), bars, _note(match, names, rest), rest)]


def _order(match: Match, added: FloatArray, joint: FloatArray) -> list[int]:
    # What differs makes a distance, but what is shared is why the answer is there.
    weight = np.abs(added) if is_linear(match.space) else joint
    return [int(row) for row in np.argsort(-weight, kind="stable")]


def _sentence(match: Match, names: list[str]) -> str:
    asked, found = match.query.point[0], match.answer.point[0]
    first, second = int(asked.argmax()), int(found.argmax())
    if first == second:
        shares = f"{per_cent(float(asked[first]))} and {per_cent(float(found[first]))}"
        return f"Both the query and the {match.answer_noun} look most like {names[first]} ({shares})."
    return (
        f"The query looks most like {names[first]} ({per_cent(float(asked[first]))}), the {match.answer_noun} most "
        f"like {names[second]} ({per_cent(float(found[second]))})."
    )


def _note(match: Match, names: list[str], rest: float) -> str:
    hidden = len(names) - _MOST_CLASSES
    shown = f"The other {counted(hidden, 'class', 'classes')} add {rest:+.3f}. " if hidden > 0 else ""
    return f"{shown}The contributions of all classes sum to the score in the space {match.space.name}."
