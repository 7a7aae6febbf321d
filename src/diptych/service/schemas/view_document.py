"""One way to look at a match."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.contribution_document import ContributionDocument
from diptych.service.schemas.document import Document


class ViewDocument(Document):
    """The bars of one idea."""

    kind: Literal["parts", "classes", "labels", "words", "pairs"]
    """What the bars stand for."""
    title: str
    """A heading."""
    sentence: str
    """The bars in one sentence."""
    bars: list[ContributionDocument]
    """Words in the order of the text, everything else with the weightiest first."""
    additive: bool
    """Whether bars and remainder sum to the score."""
    remainder: float | None
    """What everything without a bar adds, where that is known."""
    note: str
    """What was left out, and how the numbers were made."""
