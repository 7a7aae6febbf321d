"""Reading an item that is to be added from a request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from diptych.service.problem import Problem
from diptych.service.schemas.new_item import NewItem


@dataclass(frozen=True)
class SentItem:
    """What is known of an item, and its picture where it has one."""

    item: NewItem
    picture: BinaryIO | None = None
    name: str = ""


async def read_sent_item(request: Request) -> SentItem:
    """Read JSON for a text, or a form with the fields ``picture`` and ``item``."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return SentItem(_checked(await request.body()))
    if kind != "multipart/form-data":
        detail = "An item is sent as application/json, or with its picture as multipart/form-data."
        raise Problem(415, "unsupported-media-type", detail)
    try:
        form = await request.form(max_files=1, max_fields=1)
    except HTTPException as reason:
        raise Problem(400, "malformed-form", f"The form cannot be read ({reason.detail}); send it again.") from None
    unknown = sorted(set(form) - {"picture", "item"})
    if unknown:
        raise Problem(422, "invalid-request", f"The form has only picture and item, got {unknown[0]!r}; remove it.")
    picture, described = form.get("picture"), form.get("item", "{}")
    if isinstance(described, UploadFile):
        described = (await described.read()).decode("utf-8", "replace")
    if picture is not None and not isinstance(picture, UploadFile):
        raise Problem(422, "invalid-request", "The picture is sent as a file; give its part of the form a file name.")
    item = _checked(described.encode())
    return SentItem(item) if picture is None else SentItem(item, picture.file, picture.filename or "")


Sent = Annotated[SentItem, Depends(read_sent_item)]

REQUEST_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/NewItem"}},
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {
                    "picture": {
                        "type": "string",
                        "format": "binary",
                        "description": "The picture: JPEG, PNG, GIF, WebP, AVIF, TIFF, BMP or PPM.",
                    },
                    "item": {"$ref": "#/components/schemas/NewItem"},
                },
                "required": ["picture"],
                "additionalProperties": False,
            },
            "encoding": {"item": {"contentType": "application/json"}},
        },
    },
}
"""What the document of the API says of it; two kinds of content are more than the framework can describe itself."""


def _checked(content: bytes) -> NewItem:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise Problem(422, "invalid-request", "The item is no JSON object; send one as in the examples.") from None
    try:
        return NewItem.model_validate(document)
    except ValidationError as problem:
        raise RequestValidationError(
            [{**error, "loc": ("body", *error["loc"])} for error in problem.errors()]
        ) from None
