"""The three observations of Liu et al. (claims about seen and unseen classes), tested on our results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.benchmark.reporting.results import (
    AVERAGE_PRECISION,
    RANK_ONE,
    Experiment,
    MethodResults,
    TaskResults,
    find_experiments,
)
from diptych.benchmark.reporting.significance import LEVEL, each_larger_than_zero, holm, larger_than_zero

SEEN_ABOVE_UNSEEN_CLAIM = "Every method is better on seen classes than on unseen ones"
TRIVIAL_SOLUTION_CLAIM = "The trivial solution competes on seen classes and loses rank on unseen ones"
TRIVIAL = ("ts", "deep-ts")
ORDERINGS_CLAIM = "CMC and MAP order the methods differently"
Verdict = Literal["confirmed", "not confirmed", "not testable"]


@dataclass(frozen=True)
class Observation:
    """One claim on one experiment: the verdict, its p-value, a sentence of evidence, and a table of details as text.

    ``p_value`` belongs to what ``tested`` names and is None where it could not be tested.
    """

    claim: str
    where: str
    verdict: Verdict
    p_value: float | None
    evidence: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    tested: str = "the claim"

    @property
    def outcome(self) -> str:
        """The verdict with its p-value, and what that belongs to."""
        if self.p_value is None:
            return self.verdict
        return f"{self.verdict}, {p_value_phrase(self.p_value)} for {self.tested}"


def not_testable(claim: str, where: str, why: str) -> Observation:
    """Return a claim that these results cannot speak to, and why."""
    return Observation(claim, where, "not testable", None, why)


def p_value_phrase(p_value: float) -> str:
    """Return a p-value as part of a sentence."""
    written = format_p_value(p_value)
    return f"p {written}" if written.startswith("<") else f"p = {written}"


def format_signed(value: float, digits: int = 4) -> str:
    """Return a difference with its sign, a real minus."""
    return f"{value:+.{digits}f}".replace("-", "−")


def format_p_value(p_value: float | None) -> str:
    """Return a p-value as text, with a bound where it is small."""
    if p_value is None:
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


@dataclass(frozen=True)
class Drop:
    """What a method loses from seen to unseen classes, in MAP and in MAP minus chance, with p-values of both."""

    method: str
    seen: float
    unseen: float
    loss: float
    loss_above_chance: float
    lower_folds: int
    over_folds: float
    over_folds_above_chance: float
    over_queries: float | None  # The same queries above chance, in folds where their class was learned and was not.


def measure_drops(experiment: Experiment) -> list[Drop]:
    """Measure and test what every method of an experiment loses, in the order of its pairs."""
    by_query, pairs = experiment.by_query, experiment.method_pairs
    tested = [None] * len(pairs) if by_query is None else each_larger_than_zero(by_query[0] - by_query[1])
    return [_drop(*pair, p_value) for pair, p_value in zip(pairs, tested, strict=True)]


def _drop(seen: MethodResults, unseen: MethodResults, over_queries: float | None) -> Drop:
    losses = seen.per_fold() - unseen.per_fold()
    above = losses - (seen.chance_per_fold() - unseen.chance_per_fold())
    return Drop(
        method=seen.title,
        seen=seen.mean(),
        unseen=unseen.mean(),
        loss=float(losses.mean()),
        loss_above_chance=float(above.mean()),
        lower_folds=int((above > 0).sum()),
        over_folds=larger_than_zero(losses),
        over_folds_above_chance=larger_than_zero(above),
        over_queries=None if over_queries is None else float(over_queries),
    )


def seen_above_unseen(experiment: Experiment) -> Observation:
    """Test the first observation of Liu et al.: performance falls from seen to unseen classes, for every method.

    Chance differs between the settings, so a method must lose in MAP and in MAP minus chance. The p-value is the
    largest of all methods' (a claim about every method holds when each of its parts does), over queries where they
    can be compared and over folds otherwise; the table corrects the single ones by Holm. Five folds can give 1/32 at
    best.
    """
    where = experiment.title
    drops = measure_drops(experiment)
    if not drops:
        return not_testable(SEEN_ABOVE_UNSEEN_CLAIM, where, "No method was run on all folds of both settings.")
    known = [lost.over_queries for lost in drops if lost.over_queries is not None]
    decisive = known if len(known) == len(drops) else [lost.over_folds_above_chance for lost in drops]
    corrected = holm(decisive)
    losing = [lost.loss > 0 and lost.loss_above_chance > 0 for lost in drops]
    clear = [lower and p <= LEVEL for lower, p in zip(losing, corrected, strict=True)]
    p_value = max(decisive)
    folds = max(lost.over_folds_above_chance for lost in drops)
    kind = "over queries" if decisive is known else "over folds"
    return Observation(
        SEEN_ABOVE_UNSEEN_CLAIM,
        where,
        "confirmed" if all(losing) and p_value <= LEVEL else "not confirmed",
        p_value,
        f"{sum(losing)} of {len(drops)} methods lose in MAP and in MAP minus chance, {sum(clear)} of them "
        f"significantly ({kind}, Holm). For all at once {p_value_phrase(p_value)} {kind}, and "
        f"{p_value_phrase(folds)} over {len(experiment.folds)} folds. The median loss above chance is "
        f"{np.median([lost.loss_above_chance for lost in drops]):.3f}.",
        ("method", "seen", "unseen", "loss", "loss above chance", "folds lower", "p, folds", f"p, {kind[5:]}, Holm"),
        tuple(
            (
                lost.method,
                f"{lost.seen:.4f}",
                f"{lost.unseen:.4f}",
                format_signed(lost.loss),
                format_signed(lost.loss_above_chance),
                f"{lost.lower_folds} of {len(experiment.folds)}",
                format_p_value(lost.over_folds_above_chance),
                format_p_value(float(p)),
            )
            for lost, p in zip(drops, corrected, strict=True)
        ),
        tested=f"all methods {kind}",
    )


@dataclass(frozen=True, eq=False)
class RankChange:
    """The rank of a method among the real-valued ones on seen and unseen classes, for each fold."""

    title: str
    n_methods: int
    ranks: tuple[FloatArray, FloatArray]
    over_queries: float | None

    @property
    def seen(self) -> float:
        """The mean rank on seen classes."""
        return float(self.ranks[0].mean())

    @property
    def unseen(self) -> float:
        """The mean rank on unseen classes."""
        return float(self.ranks[1].mean())

    @property
    def p_value(self) -> float:
        """The p-value, over folds, of "the rank worsens"."""
        return larger_than_zero(self.ranks[1] - self.ranks[0])


def trivial_ranks(experiment: Experiment, name: str) -> RankChange | None:
    """Return how the rank of a method changes from seen to unseen classes; None with fewer than three methods."""
    kept = [number for number, pair in enumerate(experiment.method_pairs) if pair[0].n_bits is None]
    pairs = [experiment.method_pairs[number] for number in kept]
    names = [seen.name for seen, _ in pairs]
    if name not in names or len(pairs) < 3:
        return None
    place = names.index(name)
    seen, unseen = ([pair[side] for pair in pairs] for side in (0, 1))
    ranks = (_ranks_per_fold(seen)[place], _ranks_per_fold(unseen)[place])
    return RankChange(pairs[place][0].title, len(pairs), ranks, _over_queries(experiment, kept, place))


def trivial_solution(experiment: Experiment, name: str = "ts") -> Observation:
    """Test the second observation of Liu et al.: comparing predicted labels works on seen classes only.

    The real-valued methods are ranked by MAP in every fold. The trivial solution competes when its mean rank on seen
    classes is in the better half; that its rank worsens on unseen ones is tested over folds, and over queries (its rank
    among the methods for the same query). Ranks do not care that all values shrink together.
    """
    where = experiment.title
    found = trivial_ranks(experiment, name)
    if found is None:
        return not_testable(
            TRIVIAL_SOLUTION_CLAIM, where, f"It takes {name} and at least two other real-valued methods on all folds."
        )
    change = found.unseen - found.seen
    competes = found.seen <= (found.n_methods + 1) / 2
    loses = change > 0 and found.p_value <= LEVEL
    queries = "" if found.over_queries is None else f" ({p_value_phrase(found.over_queries)} over queries)"
    return Observation(
        f"{TRIVIAL_SOLUTION_CLAIM} ({found.title})",
        where,
        "confirmed" if competes and loses else "not confirmed",
        found.p_value,
        f"The mean rank of {found.title} among {found.n_methods} methods is {found.seen:.1f} on seen classes "
        f"({'in' if competes else 'not in'} the better half) and {found.unseen:.1f} on unseen ones: "
        f"{format_signed(change, 1)} places, {p_value_phrase(found.p_value)} over folds{queries}.",
        ("fold", "rank on seen", "rank on unseen", "change"),
        tuple(
            (str(fold), f"{before:.1f}", f"{after:.1f}", format_signed(after - before, 1))
            for fold, before, after in zip(experiment.seen.folds, *found.ranks, strict=True)
        ),
        tested="the loss of rank over folds",
    )


def _ranks_per_fold(methods: Sequence[MethodResults]) -> FloatArray:
    """Return methods × folds; the best has rank 1, equal ones share the mean of their ranks."""
    values = np.stack([method.per_fold() for method in methods])
    return np.asarray(scipy.stats.rankdata(-values, axis=0), dtype=np.float64)


def _over_queries(experiment: Experiment, kept: Sequence[int], place: int) -> float | None:
    if experiment.by_query is None:
        return None
    seen, unseen = (scipy.stats.rankdata(-values[:, kept], axis=1)[:, place] for values in experiment.by_query)
    return larger_than_zero(unseen - seen)


def orderings(task: TaskResults, measure: str = RANK_ONE) -> Observation:
    """Test the third observation of Liu et al.: the order by CMC, here its value at rank 1, is not the order by MAP.

    Kendall's τ says how alike the orders are. A pair of methods is a significant inversion when MAP prefers one and CMC
    the other and both preferences hold: its p-value is the larger of the two tests', corrected over all pairs by Holm.
    The claim is confirmed when there is at least one such pair, and its p-value is the smallest of these.
    """
    methods = [method for method in task.comparable_methods() if method in task.comparable_methods(measure)]
    if len(methods) < 3:
        return not_testable(
            ORDERINGS_CLAIM, task.title, f"It takes three methods whose records keep AP and {measure} per query."
        )
    maps = [method.mean() for method in methods]
    firsts = [method.mean(measure) for method in methods]
    written_tau = f"{scipy.stats.kendalltau(maps, firsts).statistic:.2f}".replace("-", "−")
    pairs = list(combinations(range(len(methods)), 2))
    inverted = [(i, j) for i, j in pairs if (maps[i] - maps[j]) * (firsts[i] - firsts[j]) < 0]
    holding = dict(zip(pairs, _both_hold(task, methods, measure, pairs, set(inverted)), strict=True))
    clear = sorted((pair for pair in inverted if holding[pair] <= LEVEL), key=holding.__getitem__)
    return Observation(
        ORDERINGS_CLAIM,
        task.title,
        "confirmed" if clear else "not confirmed",
        min(holding.values()),
        f"Kendall’s τ between the orders of {len(methods)} methods is {written_tau}; {len(inverted)} of {len(pairs)} "
        f"pairs change their order, {len(clear)} of them significantly under both measures (Holm).",
        ("better MAP", "better at rank 1", "MAP ahead by", "rank 1 ahead by", "p, Holm"),
        tuple(
            (
                methods[i].title,
                methods[j].title,
                f"{maps[i] - maps[j]:.4f}",
                f"{firsts[j] - firsts[i]:.4f}",
                format_p_value(holding[i, j]),
            )
            for i, j in clear
        ),
        tested="at least one inversion",
    )


def _both_hold(
    task: TaskResults,
    methods: Sequence[MethodResults],
    measure: str,
    pairs: Sequence[tuple[int, int]],
    inverted: Collection[tuple[int, int]],
) -> list[float]:
    """Return corrected p-values of "both measures prefer what they seem to, and not the same"; 1 where they agree."""
    larger = np.zeros((len(methods), len(methods)))
    for one in (AVERAGE_PRECISION, measure):
        places = [task.comparable_methods(one).index(method) for method in methods]
        tested = task.comparison(one)
        if tested is not None:
            larger = np.maximum(larger, tested.p_values[np.ix_(places, places)])
    corrected = holm([float(larger[pair]) if pair in inverted else 1.0 for pair in pairs])
    return [float(p_value) for p_value in corrected]


def check_observations(tasks: Sequence[TaskResults]) -> tuple[Observation, ...]:
    """Test, wherever the results allow it, what Liu et al. observed under their extendable protocol.

    (1) Every method is better on seen classes; (2) the trivial solution, TS or deep-TS, competes on seen classes and
    loses rank on unseen ones; (3) CMC and MAP order the methods differently.
    """
    experiments = find_experiments(tasks)
    trivial = [
        trivial_solution(experiment, name)
        for experiment in experiments
        for name in TRIVIAL
        if experiment.seen.method(name) is not None
    ]
    compared = [task for task in tasks if task.setting in ("seen", "unseen")]
    return (*map(seen_above_unseen, experiments), *trivial, *map(orderings, compared))
