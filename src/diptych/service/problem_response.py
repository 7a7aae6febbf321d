"""How the document of the API describes an error."""

from __future__ import annotations

from typing import Any

from diptych.service.problem_answers import MEDIA_TYPE


def problem_response(text: str) -> dict[str, Any]:
    """Return the description of an answer that is a problem document."""
    return {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
