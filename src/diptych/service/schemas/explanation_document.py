"""Why an answer is there."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.contribution_document import ContributionDocument
from diptych.service.schemas.document import Document
from diptych.service.schemas.explained_term_document import ExplainedTermDocument
from diptych.service.schemas.view_document import ViewDocument


class ExplanationDocument(Document):
    """Why an answer is there: a sentence, the bars that tell most, and all views."""

    kind: Literal["parts", "classes", "labels", "words", "pairs", "none"]
    """What the bars stand for: fused models, classes, labels of a picture, words left out, pairs of features."""
    summary: str
    """The explanation in plain English."""
    score: float
    """The score of the answer."""
    terms: list[ExplainedTermDocument]
    """The terms of the query, each with its part of the score."""
    bars: list[ContributionDocument]
    """The bars of the first view."""
    note: str
    """What the bars leave out, and how the score was made."""
    views: list[ViewDocument]
    """All views, the one that tells most first."""
