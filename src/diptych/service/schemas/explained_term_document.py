"""One term of an explained query."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class ExplainedTermDocument(Document):
    """A term of the query and what it brings."""

    name: str
    """The words, or the name of the picture."""
    weight: float
    """As it was asked."""
    score: float
    """The score of the answer for this term alone."""
    contribution: float
    """Its part of the score of the whole query; the parts of all terms sum to it."""
