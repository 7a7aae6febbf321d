"""Requests and responses of the REST API, one module for each resource."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Pixels = Annotated[int, Field(description="Of the picture, in pixels; 0 without one.")]


class Document(BaseModel):
    """A JSON object of the API; a member that is not described is refused, because it is a slip.

    What stands under a member describes it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class RequestDocument(Document):
    """A JSON object from a client: a number is a number and true is true, since anything else is a slip as well."""

    model_config = ConfigDict(strict=True)


def with_examples(*examples: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a document that the description of the API shows examples of."""
    return ConfigDict(json_schema_extra={"examples": list(examples)})
