"""What a run scored."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.arrays import FloatArray
from diptych.metrics import Measure


@dataclass(frozen=True, eq=False)
class RunScores:
    """One number for each measure, and one for each of ``queries`` in the order of the qrels.

    ``unanswered`` counts judged queries that the run does not rank, ``unjudged`` ranked queries without a judgement,
    which are left out, ``without_relevant`` queries that no item is relevant to; their values are NaN if skipped.

    >>> from diptych.benchmark.exchange import Qrels, RankedList, score_run
    >>> from diptych.metrics import AP
    >>> run = {"q1": RankedList.of("q1", {"a": 1.0}), "q9": RankedList.of("q9", {"a": 1.0})}
    >>> scores = score_run(run, Qrels({"q1": {"a": 1}, "q2": {"a": 1}}), [AP()])
    >>> scores.mean[AP()], scores.unanswered, scores.unjudged
    (0.5, 1, 1)
    """

    mean: dict[Measure, float]
    values: dict[Measure, FloatArray]
    queries: tuple[str, ...]
    unanswered: int
    unjudged: int
    without_relevant: int
