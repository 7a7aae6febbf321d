"""One answer of a search, as clients see it."""

from __future__ import annotations

from typing import Any

from diptych.service.schemas.document import Document


class AnswerDocument(Document):
    """An item that a search found."""

    rank: int
    """The place of the answer, from 1."""
    id: str
    """The item."""
    score: float
    """The similarity in the space of the retriever; larger is better."""
    probability: float
    """The calibrated probability that the answer is relevant."""
    good: bool
    """Whether that reaches the cut-off."""
    caption: str | None
    """The text that was found, when texts are searched."""
    caption_id: str | None
    """The id of that text."""
    matched_by: list[str]
    """What brought the answer up: "points" of the space, "words" of its captions."""
    picture: bool
    """Whether the item has a picture."""
    width: int
    """Of the picture, in pixels; 0 without one."""
    height: int
    """Of the picture, in pixels; 0 without one."""
    labels: list[str]
    """The labels of the item."""
    captions: list[str]
    """The first captions of the item, at most five."""
    metadata: dict[str, Any]
    """What else is known of the item."""
    name: str | None
    """The name of the file, without its folder."""
    content_hash: str | None
    """The SHA-256 of the picture; the v of a thumbnail's address."""
