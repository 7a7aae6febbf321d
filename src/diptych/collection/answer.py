"""One answer of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diptych.collection.item import Item


@dataclass(frozen=True)
class Answer:
    """One item that a search found.

    ``score`` is the similarity in the space of the retriever, larger is better; ``probability`` the calibrated
    probability that the answer is relevant. ``caption`` is the text that was found when texts are searched, None when
    pictures are. ``matched_by`` says what brought the answer up: "points" of the space, "words" of its captions.
    ``item`` is the whole item as it was when it was found.
    """

    rank: int
    id: str
    path: Path | None
    score: float
    probability: float
    caption: str | None = None
    caption_id: str | None = None
    matched_by: tuple[str, ...] = ("points",)
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    item: Item | None = field(default=None, repr=False, compare=False)
