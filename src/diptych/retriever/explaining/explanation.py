"""Why an answer is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from diptych.retriever.explaining.contribution import Contribution
from diptych.retriever.explaining.explained_term import ExplainedTerm
from diptych.retriever.explaining.view import View

ExplanationKind = Literal["parts", "classes", "labels", "words", "pairs", "none"]


@dataclass(frozen=True)
class Explanation:
    """Why an answer is there: a sentence, the bars of the view that tells most, and further views.

    Made by :func:`diptych.retriever.explain`.

    ============ ==========================================================================================
    ``parts``    fusions: what each of the fused models brings
    ``classes``  semantic models: the class probabilities of query and answer side by side
    ``labels``   ConSE, and networks with a classifier: the labels seen in a picture and how near they are
    ``words``    projections: what the score loses without each word
    ``pairs``    linear projections of named features: the pairs of features that make up the score
    ``none``     the model's coordinates have no meaning that could be told
    ============ ==========================================================================================
    """

    summary: str
    score: float
    terms: tuple[ExplainedTerm, ...]
    views: tuple[View, ...] = ()

    @property
    def kind(self) -> ExplanationKind:
        """What the bars stand for."""
        return self.views[0].kind if self.views else "none"

    @property
    def bars(self) -> tuple[Contribution, ...]:
        """The bars of the first view."""
        return self.views[0].bars if self.views else ()

    @property
    def note(self) -> str:
        """What the bars leave out, and how the score was made."""
        return self.views[0].note if self.views else ""

    def document(self) -> dict[str, Any]:
        """Return the explanation as plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "summary": self.summary,
            "score": self.score,
            "terms": [term.document() for term in self.terms],
            "bars": [bar.document() for bar in self.bars],
            "note": self.note,
            "views": [view.document() for view in self.views],
        }
