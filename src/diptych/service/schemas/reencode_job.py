"""The job that finishes a change of retriever."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.service.schemas.no_parameters import NoParameters
from diptych.service.schemas.sent_document import SentDocument


class ReencodeJob(SentDocument):
    """Finish a change of retriever that was begun."""

    kind: Literal["reencode"]
    """What is to be done."""
    parameters: NoParameters = Field(default_factory=NoParameters)
    """How."""
