"""A click, as sent."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from diptych.service.clicks.kinds import ClickKind
from diptych.service.schemas.sent_document import SentDocument


class ClickRequest(SentDocument):
    """What a person did with one answer of a search."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"search_id": "0123456789abcdef0123456789abcdef", "item": "5f2b", "position": 1, "kind": "open"},
            ]
        }
    )

    search_id: str = Field(min_length=1, max_length=64)
    """The search that showed the answer."""
    item: str = Field(min_length=1, max_length=400)
    """The id of the answer."""
    position: int = Field(ge=1, le=2**31 - 1)
    """The rank at which it was shown, from 1."""
    kind: ClickKind = "open"
    """What was done: opened, looked at in full, or asked for more or less like it."""
    caption_id: str | None = Field(default=None, max_length=400)
    """Which text of the item it was, when texts were searched."""
