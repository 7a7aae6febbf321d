"""The job that learns a retriever."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.service.schemas.sent_document import SentDocument
from diptych.service.schemas.train_parameters import TrainParameters


class TrainJob(SentDocument):
    """Learn a retriever from the collection, and use it where it is better than the present one."""

    kind: Literal["train"]
    """What is to be done."""
    parameters: TrainParameters = Field(default_factory=TrainParameters)
    """How."""
