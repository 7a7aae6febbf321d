"""What a collection has learned from clicks."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.learning_step import LearningStep


class LearningDocument(Document):
    """Every step of learning from clicks, and the way back."""

    steps: list[LearningStep]
    """The latest first."""
    rolls_back_to: str | None
    """The retriever that going back would use again; null where the active one was not learned from clicks."""
