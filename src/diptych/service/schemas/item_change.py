"""What is to be changed of an item."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from diptych.service.schemas.sent_document import SentDocument

Text = Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"\S")]


class ItemChange(SentDocument):
    """Captions, labels and metadata of an item; what is absent or null stays, what is empty is erased."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"captions": ["a red boat"], "labels": ["boat"]}]})

    captions: list[Text] | None = Field(default=None, max_length=1000)
    """What is said of the picture, or the text itself."""
    labels: list[Label] | None = Field(default=None, max_length=1000)
    """What it shows."""
    metadata: dict[str, Any] | None = Field(default=None, max_length=1000)
    """What else is known of it; JSON values."""
