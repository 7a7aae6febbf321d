"""A picture file and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MetadataValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class CaptionedPicture:
    """A picture file with its captions, its labels and whatever else a caption file says about it.

    Metadata are plain values, strings, numbers and booleans; what was a list or an object is kept as JSON text.

    >>> from pathlib import Path
    >>> from diptych.data import CaptionedPicture
    >>> CaptionedPicture(Path("1.jpg"), ("a boat",), labels=("boat",), metadata={"year": 2010}).metadata["year"]
    2010
    """

    path: Path
    captions: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
