"""Suggestions."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.suggestion_document import SuggestionDocument


class SuggestionList(Document):
    """Queries that one may have in mind, the likeliest first."""

    suggestions: list[SuggestionDocument]
