"""The job that brings a collection up to date."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.service.schemas.index_parameters import IndexParameters
from diptych.service.schemas.sent_document import SentDocument


class IndexJob(SentDocument):
    """Bring a collection up to date with the pictures in its folder."""

    kind: Literal["index"]
    """What is to be done."""
    parameters: IndexParameters = Field(default_factory=IndexParameters)
    """How."""
