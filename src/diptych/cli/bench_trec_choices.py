"""What may be typed where ``diptych bench trec`` offers a choice."""

from __future__ import annotations

from enum import StrEnum


class RunTieBreaking(StrEnum):
    """What happens to items of equal score in a run file."""

    TREC = "trec"
    EXPECTED = "expected"
    RANDOM = "random"
    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"


class WrittenScores(StrEnum):
    """What the column of scores holds."""

    RANK = "rank"
    MODEL = "model"
