"""Measures of a run against judgements, as other tools count them and by the names that they give them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.benchmark.exchange.trec_files import Qrels, RankedList
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import AP, CMC, NDCG, Measure, Precision, RankedGroups, Recall, Ties, break_ties

_NEEDS_CUTOFF: dict[str, Callable[[int], Measure]] = {"P": Precision, "R": Recall, "Success": CMC}
_FORM = re.compile(r"(?P<name>[A-Za-z-]+)(?:@(?P<cutoff>[0-9]+))?")

# What `find_measure` understands, k being a number.
MEASURE_NAMES = ("AP", "AP@k", "P@k", "R@k", "RR", "nDCG", "nDCG@k", "nDCG-exp", "nDCG-exp@k", "Success@k")


@dataclass(frozen=True)
class LinearNDCG(Measure):
    """Normalised discounted cumulative gain where the gain is the grade itself.

        NDCG@k = Σ_{i ≤ k} relᵢ / log₂(i + 1), divided by that of the query's best list

    It is trec_eval's ``ndcg`` and ``ndcg_cut`` (after Järvelin & Kekäläinen, TOIS 2002), ``ndcg`` of ranx and ``nDCG``
    of ir_measures. :class:`~diptych.metrics.NDCG` has the gain 2^rel − 1, called ``ndcg_burges`` by ranx and
    ``nDCG(dcg='exp-log2')`` by ir_measures. Both agree where grades are 0 and 1. Exact in expectation under ties.

    >>> from diptych.benchmark.exchange import LinearNDCG
    >>> from diptych.metrics import NDCG, GradedRelevance, evaluate_scores
    >>> relevance, measures = GradedRelevance([[1, 3, 0]]), [LinearNDCG(), NDCG(None, "ideal")]
    >>> [round(value, 4) for value in evaluate_scores([[0.9, 0.8, 0.7]], relevance, measures).mean.values()]
    [0.7967, 0.7098]
    """

    cutoff: int | None = None

    def __post_init__(self) -> None:
        NDCG(self.cutoff, "ideal")

    @property
    def label(self) -> str:
        """``NDCG@k`` with its gain."""
        return f"NDCG{'' if self.cutoff is None else f'@{self.cutoff}'} (linear gain)"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        # A gain of 2^g' − 1 with g' = log₂(1 + g) is g.
        return NDCG(self.cutoff, "ideal").compute(replace(groups, grades=np.log2(1 + groups.grades)))


@dataclass(frozen=True)
class RR(Measure):
    """One over the rank of the first relevant item; its mean over queries is MRR.

    Under ties the first of r relevant items among n stands at position j of the group with probability
    C(n − j, r − 1) / C(n, r), and with N items before the group

        E[RR] = Σ_{j = 1 … n − r + 1} C(n − j, r − 1) / C(n, r) · 1 / (N + j)

    which is exact (McSherry & Najork, "Computing information retrieval performance measures efficiently in the presence
    of tied scores", ECIR 2008). Use it where one right answer ends the search.

    >>> from diptych.benchmark.exchange import RR
    >>> from diptych.metrics import SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog", "dog"])
    >>> evaluate_scores([[0.9, 0.5, 0.5], [0.9, 0.5, 0.5]], relevance, [RR()])[RR()]
    0.75
    """

    @property
    def label(self) -> str:
        """``MRR``."""
        return "MRR"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        values = np.zeros(groups.n_queries)
        for index in groups.first:
            share = _first_positions(int(groups.size[index]), int(groups.hits[index]))
            ranks = groups.before[index] + np.arange(1, len(share) + 1)
            values[groups.query[index]] = float(np.sum(share / ranks))
        return values


def _first_positions(size: int, hits: int) -> FloatArray:
    """Return the probability that the first of ``hits`` relevant items stands at position 1, 2, … of ``size``."""
    drawn = np.arange(size - hits, dtype=np.float64)
    missed = np.concatenate([[1.0], np.cumprod((size - hits - drawn) / (size - drawn))])
    found = hits / (size - np.arange(size - hits + 1, dtype=np.float64))
    return cast(FloatArray, missed * found)


_MAY_HAVE_CUTOFF: dict[str, Callable[[int | None], Measure]] = {
    "AP": AP,
    "nDCG": LinearNDCG,
    "nDCG-exp": lambda cutoff: NDCG(cutoff, "ideal"),
}

_WHOLE: dict[str, Callable[[], Measure]] = {"RR": RR}


def find_measure(name: str) -> Measure:
    """Return the measure that ir_measures calls ``name``: AP, P@10, R@10, RR, nDCG@10, Success@5 and the like.

    AP@k divides by all relevant items, as trec_eval's ``map_cut``; ``nDCG`` has the grade for a gain, ``nDCG-exp``
    2^grade − 1; ``Success@k`` asks whether any of the first k is relevant.

    >>> from diptych.benchmark.exchange import find_measure
    >>> find_measure("P@10"), find_measure("nDCG@5")
    (Precision(cutoff=10), LinearNDCG(cutoff=5))
    """
    form = _FORM.fullmatch(name)
    known = {one.lower(): one for one in (*_NEEDS_CUTOFF, *_MAY_HAVE_CUTOFF, *_WHOLE)}
    kind = known.get(form["name"].lower()) if form else None
    if form is None or kind is None:
        raise UnknownNameError("measure", name, MEASURE_NAMES)
    cutoff = int(form["cutoff"]) if form["cutoff"] else None
    if kind in _WHOLE and cutoff is None:
        return _WHOLE[kind]()
    if kind in _MAY_HAVE_CUTOFF:
        return _MAY_HAVE_CUTOFF[kind](cutoff)
    if kind in _NEEDS_CUTOFF and cutoff is not None:
        return _NEEDS_CUTOFF[kind](cutoff)
    fix = f"leave the cutoff out: {kind}" if kind in _WHOLE else f"add one, such as {kind}@10"
    raise InvalidInputError(f"the measure {name!r} {'has no' if kind in _WHOLE else 'needs a'} cutoff; {fix}")


RunTies = Literal["trec"] | Ties
Missing = Literal["zero", "skip"]
Gains = Literal["grades", "binary"]


@dataclass(frozen=True, eq=False)
class RunScores:
    """One number for each measure, and one for each of ``queries`` in the order of the qrels.

    ``unanswered`` counts judged queries that the run does not rank, ``unjudged`` ranked queries without a judgement,
    which are left out, ``without_relevant`` queries that no item is relevant to; their values are NaN if skipped.
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
    level: int = 1,
    gains: Gains = "grades",
    seed: int = 0,
) -> RunScores:
    """Measure a run, read from a file or made by `ranked_lists`, by the conventions of trec_eval.

    A relevant item that a list does not rank is not found, wherever it might have stood; a list shorter than a cutoff
    counts as if irrelevant items followed. ``ties="trec"`` orders items of equal score as trec_eval does, in single
    precision (`RankedList.in_order`); the other policies are those of :func:`diptych.metrics.evaluate`, in double.
    ``missing`` says what happens to judged queries that the run does not rank: they score the worst, as with trec_eval
    ``-c`` and in ir_measures, or are left out, as in trec_eval without it. ``empty`` says the same of queries without a
    relevant item: trec_eval counts them as zero, here they are left out unless told. An item is relevant from the grade
    ``level`` on, trec_eval's ``-l``; nDCG keeps the grades below it as gains, as trec_eval does, unless ``gains`` is
    ``"binary"``.

    >>> from diptych.benchmark.exchange import Qrels, RankedList, score_run
    >>> from diptych.metrics import AP
    >>> run = {"q1": RankedList.of("q1", {"a": 0.5, "b": 0.5})}
    >>> [score_run(run, Qrels({"q1": {"a": 1}}), [AP()], ties=ties).mean[AP()] for ties in ("trec", "expected")]
    [0.5, 0.75]
    """
    _check(measures, missing=missing, empty=empty, gains=gains)
    queries = tuple(query for query in qrels.grades if missing == "zero" or query in run)
    if not queries:
        raise InvalidInputError("the run ranks none of the judged queries; check that both files name queries alike")
    relevant = qrels if level == 1 else qrels.at_least(level)
    depth = max([_collection_size(run, qrels), *(getattr(measure, "cutoff", None) or 1 for measure in measures)])
    policy = "expected" if ties == "trec" else ties

    def groups_of(judged: Qrels) -> RankedGroups:
        grouped = _grouped(run, judged, queries, judged.positive_grades, depth, ties)
        return break_ties(grouped, policy, seed)

    binary = groups_of(relevant)
    graded = binary if relevant is qrels or gains == "binary" else groups_of(qrels)
    values = {}
    for measure in measures:
        groups = graded if isinstance(measure, LinearNDCG | NDCG) else binary
        found = measure.compute(groups)
        values[measure] = np.where(groups.n_relevant > 0, found, measure.worst(groups)) if empty == "zero" else found
    return RunScores(
        mean={measure: measure.aggregate(found) for measure, found in values.items()},
        values=values,
        queries=queries,
        unanswered=sum(query not in run for query in qrels.grades),
        unjudged=sum(query not in qrels.grades for query in run),
        without_relevant=int((binary.n_relevant == 0).sum()),
    )


def _check(measures: Sequence[Measure], *, missing: str, empty: str, gains: str) -> None:
    if not measures:
        raise InvalidInputError("there is nothing to measure; pass measures such as AP() or Precision(10)")
    for name, given, known in (("missing", missing, Missing), ("empty", empty, Missing), ("gains", gains, Gains)):
        if given not in get_args(known):
            raise InvalidInputError(f"{name} must be one of {', '.join(get_args(known))}, got {given!r}")


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
