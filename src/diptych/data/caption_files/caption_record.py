"""What one place of a caption file says about one picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CaptionRecord:
    """A picture as a caption file names it, what is said about it, and where.

    ``place`` is the row or key, for messages. Captions are as written: empty ones are still among them.
    """

    file: str
    captions: tuple[str, ...]
    place: str
    labels: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
