"""A job that learns from clicks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.service.schemas.learn_parameters import LearnParameters
from diptych.service.schemas.sent_document import SentDocument


class LearnJob(SentDocument):
    """Learn a retriever from what people clicked, and use it where it is better than the present one."""

    kind: Literal["learn"]
    """What is to be done."""
    parameters: LearnParameters = Field(default_factory=LearnParameters)
    """How."""
