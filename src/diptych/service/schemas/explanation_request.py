"""A question why an answer is there, as sent."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field, model_validator

from diptych.service.schemas.search_options import Target
from diptych.service.schemas.sent_document import SentDocument
from diptych.service.schemas.term_request import TermRequest


class ExplanationRequest(SentDocument):
    """The search as it was sent, and one of its answers."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "a dog on the beach", "item": "5f2b"}]})

    query: str | None = Field(default=None, min_length=1, max_length=2000)
    """Words of the query language, as in a search."""
    terms: list[TermRequest] | None = Field(default=None, min_length=1, max_length=16)
    """The terms of a query one by one."""
    item: str = Field(min_length=1, max_length=400)
    """The id of the answer."""
    caption_id: str | None = Field(default=None, min_length=1, max_length=400)
    """Which of the item's texts, where texts were searched; by default the first."""
    target: Target = "images"
    """What was searched: pictures or texts."""
    retriever: str | None = Field(default=None, min_length=1, max_length=200)
    """The name of a retriever of the collection; by default the active one."""

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.query is None) == (self.terms is None):
            raise ValueError("an explanation has exactly one of query and terms")
        if self.caption_id is not None and self.target == "images":
            raise ValueError("caption_id belongs to the target texts")
        return self
