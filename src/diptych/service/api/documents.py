"""What the documents of the REST API have in common."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

# Dataclasses in documents are described by what stands under their fields.
DOCUMENTED = ConfigDict(use_attribute_docstrings=True)

Pixels = Annotated[int, Field(description="Of the picture, in pixels; 0 without one.")]
Fingerprint = Annotated[str, Field(description="A digest of all that shapes what a search model (retriever) stores.")]
RetrieverChoice = Annotated[
    str | None,
    Field(
        min_length=1, max_length=200, description="The name of a search model (retriever); by default the active one."
    ),
]


class Document(BaseModel):
    """A JSON object of the API; a member that is not described is refused, because it is a slip.

    What stands under a member describes it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True, use_attribute_docstrings=True)


class RequestDocument(Document):
    """A JSON object from a client: a number is a number and true is true, since anything else is a slip as well."""

    model_config = ConfigDict(strict=True)


class RetrieverSummary(Document):
    """Which search model (retriever) made an answer."""

    name: str
    """What people call it."""
    fingerprint: Fingerprint


def with_examples(*examples: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a document that the description of the API shows examples of."""
    return ConfigDict(json_schema_extra={"examples": list(examples)})


def document_of(kind: type) -> Any:
    """Return the document that has the fields of a dataclass, with their defaults, descriptions and bounds."""
    types = get_type_hints(kind)
    members: dict[str, Any] = {}
    for one in fields(kind):
        bounds = {"min_length": 1, "max_length": 200} if types[one.name] in (str, str | None) else {}
        told: dict[str, Any] = {**bounds, **one.metadata}
        members[one.name] = types[one.name], Field(default=one.default, **told)
    return create_model(kind.__name__, __base__=Document, __doc__=kind.__doc__, **members)


def binary_response(description: str, kinds: Collection[str]) -> dict[str, Any]:
    """Return the description of an answer that is a file of one of these media types."""
    return {"description": description, "content": dict.fromkeys(sorted(kinds), _BYTES)}


_BYTES = {"schema": {"type": "string", "format": "binary"}}
