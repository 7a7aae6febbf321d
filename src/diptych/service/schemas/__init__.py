"""Requests and responses of the REST API, one module for each resource."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler

Pixels = Annotated[int, Field(description="Of the picture, in pixels; 0 without one.")]


class Document(BaseModel):
    """A JSON object of the API; a member that is not described is refused, because it is a slip.

    What stands under a member describes it. That is read when somebody asks for the description of the API: for all
    documents it takes a tenth of the time in which a worker starts, and workers are hardly ever asked.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        members = handler.resolve_ref_schema(schema).get("properties", {})
        for kind in cls.__mro__[::-1]:
            if issubclass(kind, Document):
                for name, text in _descriptions(kind.__module__).get(kind.__name__, {}).items():
                    if name in members and cls.model_fields[name].description is None:
                        members[name]["description"] = text
        return schema


@cache
def _descriptions(module: str) -> dict[str, dict[str, str]]:
    """Return what stands under the members of the classes of a module."""
    written = ast.parse(inspect.getsource(sys.modules[module])).body
    return {one.name: dict(_described_members(one)) for one in written if isinstance(one, ast.ClassDef)}


def _described_members(written: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for one in pairwise(written.body):
        match one:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)


class RequestDocument(Document):
    """A JSON object from a client: a number is a number and true is true, since anything else is a slip as well."""

    model_config = ConfigDict(strict=True)


PARAMETERS = ConfigDict(use_attribute_docstrings=True)
"""The configuration of a document whose members are parameters of an address; FastAPI asks for these at once."""


def with_examples(*examples: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a document that the description of the API shows examples of."""
    return ConfigDict(json_schema_extra={"examples": list(examples)})
