"""One part of a query, as sent."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from diptych.service.schemas.sent_document import SentDocument

_Words = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=400)]


class TermRequest(SentDocument):
    """Words, a stored item or an uploaded picture, with a weight; exactly one of the three is given."""

    text: _Words | None = None
    """Words, exactly as they are."""
    item: _Name | None = None
    """The id of a stored item."""
    upload: _Name | None = None
    """The id of an uploaded picture."""
    weight: float = Field(default=1.0, ge=-100, le=100)
    """How much the term counts, other than 0; below 0 asks for what is unlike it."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(value is not None for value in (self.text, self.item, self.upload)) != 1:
            raise ValueError("a term has exactly one of text, item and upload")
        if self.weight == 0:
            raise ValueError("the weight of a term is a number other than 0")
        if self.text is not None and not self.text.strip():
            raise ValueError("the text of a term holds words")
        return self
