"""A search, as sent."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field, model_validator

from diptych.service.schemas.search_options import SearchOptions
from diptych.service.schemas.term_request import TermRequest


class SearchRequest(SearchOptions):
    """What to look for, as text of the query language or as terms: exactly one of the two."""

    model_config = ConfigDict(
        strict=True,
        json_schema_extra={
            "examples": [
                {"query": "a dog on the beach - snow", "limit": 10},
                {"terms": [{"text": "a dog", "weight": 2}, {"item": "5f2b"}], "target": "texts"},
            ]
        },
    )

    query: str | None = Field(default=None, min_length=1, max_length=2000)
    """Words; with + and - between terms, weights as in 2:dog, and item:ID for a stored item."""
    terms: list[TermRequest] | None = Field(default=None, min_length=1, max_length=16)
    """The terms of a query one by one."""

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.query is None) == (self.terms is None):
            raise ValueError("a search has exactly one of query and terms")
        return self
