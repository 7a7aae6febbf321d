"""What ``evaluate`` measures, and each measure in words."""

from __future__ import annotations

from diptych.metrics import AP, CMC, NDCG, MeanRank, Measure, MedianRank, Precision, RecallAtK

BY_LABEL: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), Precision(10), Precision(50), NDCG(10, "ideal"))
BY_INSTANCE: tuple[Measure, ...] = (RecallAtK(1), RecallAtK(5), RecallAtK(10), MedianRank(), MeanRank(), AP())


def in_words(measure: Measure) -> str:
    """Return the full name of a measure, for readers who do not know its short one.

    >>> from diptych.cli.measures import in_words
    >>> from diptych.metrics import CMC
    >>> in_words(CMC(5))
    'cumulative match'
    """
    names: dict[type[Measure], str] = {
        AP: "mean average precision",
        CMC: "cumulative match",
        RecallAtK: "recall, any hit",
        Precision: "precision",
        NDCG: "normalised gain",
        MedianRank: "of the first hit",
        MeanRank: "of the first hit",
    }
    return names[type(measure)]


def is_rank(measure: Measure) -> bool:
    """Say whether the measure is a rank, where less is better, and not a share."""
    return isinstance(measure, MedianRank | MeanRank)
