"""What all documents of the API share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A JSON object of the API; a member that is not described is refused, because it is a slip."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
