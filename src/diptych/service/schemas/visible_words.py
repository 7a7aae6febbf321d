"""Words of a query that name something visible."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class VisibleWords(Document):
    """A part of a query that is the name of something that can be seen in pictures."""

    start: int
    """Where it begins in the query, in characters from 0."""
    end: int
    """The character behind it."""
    concept: str
    """The name, as ImageNet has it."""
