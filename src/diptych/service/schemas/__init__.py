"""Requests and responses of the REST API, one module for each resource."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A JSON object of the API; a member that is not described is refused, because it is a slip."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class RequestDocument(Document):
    """A JSON object from a client: a number is a number and true is true, since anything else is a slip as well."""

    model_config = ConfigDict(strict=True)
