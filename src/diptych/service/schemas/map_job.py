"""The job that draws a map."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.service.schemas.map_parameters import MapParameters
from diptych.service.schemas.sent_document import SentDocument


class MapJob(SentDocument):
    """Draw the map of the collection."""

    kind: Literal["map"]
    """What is to be done."""
    parameters: MapParameters = Field(default_factory=MapParameters)
    """How."""
