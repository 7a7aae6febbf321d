"""What may be typed where a command offers a choice."""

from __future__ import annotations

from enum import StrEnum


class Relevance(StrEnum):
    """What counts as a right answer."""

    AUTO = "auto"
    LABEL = "label"
    INSTANCE = "instance"


class TieBreaking(StrEnum):
    """What happens to items of equal score."""

    EXPECTED = "expected"
    RANDOM = "random"
    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"


class Scaling(StrEnum):
    """How rows of features are scaled."""

    NONE = "none"
    L1 = "l1"
    L2 = "l2"
    HELLINGER = "hellinger"


class PictureFormat(StrEnum):
    """What kind of file a figure becomes."""

    PNG = "png"
    SVG = "svg"
