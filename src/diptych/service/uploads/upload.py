"""A picture that was sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Upload:
    """A picture that was sent, kept for a while.

    ``file`` holds it as it came, so that it is encoded as it would be from a disk, and ``preview`` a small JPEG of it.
    ``expires`` counts seconds since 1970.
    """

    id: str
    file: Path
    preview: Path
    width: int
    height: int
    expires: float
