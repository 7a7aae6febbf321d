"""Which two retrievers are to be compared on live traffic."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from diptych.service.schemas.sent_document import SentDocument


class InterleavingRequest(SentDocument):
    """Two retrievers of the collection."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"a": "default", "b": "learned"}]})

    a: str = Field(min_length=1, max_length=200)
    """The name of one."""
    b: str = Field(min_length=1, max_length=200)
    """The name of the other."""
