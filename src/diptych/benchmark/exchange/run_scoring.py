"""Measures of a run against judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.benchmark.exchange.trec_files import Qrels, RankedList
from diptych.errors import InvalidInputError
from diptych.metrics import Measure, RankedGroups, Ties, break_ties

RunTies = Literal["trec"] | Ties
Missing = Literal["zero", "skip"]


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


def score_run(
    run: Mapping[str, RankedList],
    qrels: Qrels,
    measures: Sequence[Measure],
    *,
    ties: RunTies = "trec",
    missing: Missing = "zero",
    empty: Missing = "skip",
    seed: int = 0,
) -> RunScores:
    """Measure a run, read from a file or made by `ranked_lists`, by the conventions of trec_eval.

    A relevant item that a list does not rank is not found, wherever it might have stood; a list shorter than a cutoff
    counts as if irrelevant items followed. ``ties="trec"`` orders items of equal score as trec_eval does, in single
    precision (`RankedList.in_order`); the other policies are those of :func:`diptych.metrics.evaluate`, in double.
    ``missing`` says what happens to judged queries that the run does not rank: they score the worst, as with trec_eval
    ``-c`` and in ir_measures, or are left out. ``empty`` says the same of queries without a relevant item, which are
    left out unless told.

    >>> from diptych.benchmark.exchange import Qrels, RankedList, score_run
    >>> from diptych.metrics import AP
    >>> run = {"q1": RankedList.of("q1", {"a": 0.5, "b": 0.5})}
    >>> [score_run(run, Qrels({"q1": {"a": 1}}), [AP()], ties=ties).mean[AP()] for ties in ("trec", "expected")]
    [0.5, 0.75]
    """
    _check(measures, missing, empty)
    queries = tuple(query for query in qrels.grades if missing == "zero" or query in run)
    if not queries:
        raise InvalidInputError("the run ranks none of the judged queries; check that both files name queries alike")
    levels = qrels.positive_grades
    depth = max([_collection_size(run, qrels), *(getattr(measure, "cutoff", None) or 1 for measure in measures)])
    groups = break_ties(
        _grouped(run, qrels, queries, levels, depth, ties), "expected" if ties == "trec" else ties, seed
    )
    values = {measure: measure.compute(groups) for measure in measures}
    if empty == "zero":
        values = {one: np.where(groups.n_relevant > 0, found, one.worst(groups)) for one, found in values.items()}
    return RunScores(
        mean={measure: measure.aggregate(found) for measure, found in values.items()},
        values=values,
        queries=queries,
        unanswered=sum(query not in run for query in qrels.grades),
        unjudged=sum(query not in qrels.grades for query in run),
        without_relevant=int((groups.n_relevant == 0).sum()),
    )


def _check(measures: Sequence[Measure], missing: str, empty: str) -> None:
    if not measures:
        raise InvalidInputError("there is nothing to measure; pass measures such as AP() or Precision(10)")
    for name, given in (("missing", missing), ("empty", empty)):
        if given not in get_args(Missing):
            raise InvalidInputError(f"{name} must be one of {', '.join(get_args(Missing))}, got {given!r}")


def _collection_size(run: Mapping[str, RankedList], qrels: Qrels) -> int:
    """Return how many items are known, which is as far as an ideal list can reach."""
    ranked = [np.unique(ranking.items) for ranking in run.values()]
    judged = {item for items in qrels.grades.values() for item in items}
    return len(judged.union(*(items.tolist() for items in ranked)))


def _grouped(
    run: Mapping[str, RankedList], qrels: Qrels, queries: Sequence[str], levels: FloatArray, depth: int, ties: RunTies
) -> RankedGroups:
    found = [_groups_of(run[query], qrels.grades[query], levels, ties) if query in run else None for query in queries]
    kept = [(number, part) for number, part in enumerate(found) if part is not None]
    empty = np.zeros(0, dtype=np.int64)
    return RankedGroups(
        query=np.concatenate([empty, *(np.full(len(part[0]), number) for number, part in kept)]),
        before=np.concatenate([empty, *(part[0] for _, part in kept)]),
        size=np.concatenate([empty, *(part[1] for _, part in kept)]),
        relevant=np.concatenate([np.zeros((0, len(levels)), dtype=np.int64), *(part[2] for _, part in kept)]),
        total=np.array([_counted([*qrels.grades[query].values()], levels) for query in queries]),
        gallery=np.full(len(queries), depth),
        grades=levels,
        rows=np.arange(len(queries)),
    )


def _groups_of(
    ranking: RankedList, grades: Mapping[str, int], levels: FloatArray, ties: RunTies
) -> tuple[IntArray, IntArray, IntArray]:
    """Return items before, size and relevant items by grade of the tie groups that hold a relevant item."""
    if ties == "trec":
        names, starts = ranking.in_order(single_precision=True).items, np.ones(len(ranking.items), dtype=bool)
    else:
        order = np.argsort(-ranking.scores, kind="stable")
        names, ordered = ranking.items[order], ranking.scores[order]
        starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    given = np.array([grades.get(name, 0) for name in names.tolist()])
    before = np.flatnonzero(starts)
    group = np.cumsum(starts) - 1
    hit = given > 0
    relevant = np.zeros((len(before), len(levels)), dtype=np.int64)
    np.add.at(relevant, (group[hit], np.searchsorted(levels, given[hit])), 1)
    kept = relevant.any(axis=1)
    return before[kept], np.diff(before, append=len(names))[kept], relevant[kept]


def _counted(grades: Sequence[int], levels: FloatArray) -> IntArray:
    positive = np.array([grade for grade in grades if grade > 0], dtype=np.float64)
    return np.bincount(np.searchsorted(levels, positive), minlength=len(levels))
