"""An item to be added."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from diptych.service.schemas.item_change import ItemChange


class NewItem(ItemChange):
    """What is known of a picture that is sent along, or a text, which needs a caption."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"captions": ["a red boat"], "metadata": {"year": 2010}}]}
    )

    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._~-]*$", max_length=200)
    """Its name in addresses; without one it is made up."""
