"""What ``evaluate`` measures, and each measure in words."""

from __future__ import annotations

from diptych.errors import InvalidInputError
from diptych.metrics import AP, CMC, NDCG, MeanRank, Measure, MedianRank, Precision, RecallAtK

BY_LABEL: tuple[Measure, ...] = (AP(), CMC(1), CMC(5), CMC(10), Precision(10), Precision(50), NDCG(10, "ideal"))
BY_INSTANCE: tuple[Measure, ...] = (RecallAtK(1), RecallAtK(5), RecallAtK(10), MedianRank(), MeanRank(), AP())


def in_words(measure: Measure) -> str:
    """Return the full name of a measure, for readers who do not know its short one.

    >>> from diptych.cli.measures import in_words
    >>> from diptych.metrics import CMC
    >>> in_words(CMC(5))
    'cumulative match: a right answer within 5'
    """
    match measure:
        case AP():
            return "mean average precision"
        case CMC(rank):
            return f"cumulative match: a right answer within {rank}"
        case RecallAtK(cutoff):
            return f"recall: a right answer within {cutoff}"
        case Precision(cutoff):
            return f"precision of the first {cutoff}"
        case NDCG(cutoff):
            return f"discounted gain of the first {cutoff}, best 1"
        case MedianRank():
            return "median rank of the first right answer"
        case MeanRank():
            return "mean rank of the first right answer"
    raise InvalidInputError(f"{measure!r} has no name in words yet; add one to in_words")


def is_rank(measure: Measure) -> bool:
    """Say whether the measure is a rank, where less is better, and not a share."""
    return isinstance(measure, MedianRank | MeanRank)
