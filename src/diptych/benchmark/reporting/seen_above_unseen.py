"""Is every method better on the classes it learned?"""

from __future__ import annotations

from dataclasses import dataclass

from diptych.benchmark.reporting.comparison import LEVEL
from diptych.benchmark.reporting.experiment import Experiment
from diptych.benchmark.reporting.holm import holm
from diptych.benchmark.reporting.method_results import MethodResults
from diptych.benchmark.reporting.observation import Observation, p_equals, signed, untested, written_p
from diptych.benchmark.reporting.sign_flips import each_larger_than_zero, larger_than_zero

CLAIM = "Every method is better on seen classes than on unseen ones"


@dataclass(frozen=True)
class Drop:
    """What a method loses from seen to unseen classes, in MAP and in MAP minus chance, with p-values of both.

    ``over_queries`` compares the same queries, above chance, in folds where their class was learned and in folds where
    it was not; None where records keep no values per query, or no class is in both.
    """

    method: str
    seen: float
    unseen: float
    loss: float
    loss_above_chance: float
    lower_folds: int
    over_folds: float
    over_folds_above_chance: float
    over_queries: float | None


def drops_of(experiment: Experiment) -> list[Drop]:
    """Measure and test what every method of an experiment loses, in the order of its pairs."""
    by_query = experiment.by_query
    tested = [None] * len(experiment.pairs) if by_query is None else each_larger_than_zero(by_query[0] - by_query[1])
    return [_drop(*pair, p_value) for pair, p_value in zip(experiment.pairs, tested, strict=True)]


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
    drops = drops_of(experiment)
    if not drops:
        return untested(CLAIM, where, "No method was run on all folds of both settings.")
    by_query = [lost.over_queries for lost in drops]
    known = [p for p in by_query if p is not None]
    decisive = known if len(known) == len(drops) else [lost.over_folds_above_chance for lost in drops]
    corrected = holm(decisive)
    losing = [lost.loss > 0 and lost.loss_above_chance > 0 for lost in drops]
    clear = [lower and p <= LEVEL for lower, p in zip(losing, corrected, strict=True)]
    p_value = max(decisive)
    folds = max(lost.over_folds_above_chance for lost in drops)
    kind = "over queries" if decisive is known else "over folds"
    return Observation(
        CLAIM,
        where,
        "confirmed" if all(losing) and p_value <= LEVEL else "not confirmed",
        p_value,
        f"{sum(losing)} of {len(drops)} methods lose in MAP and in MAP minus chance, {sum(clear)} of them "
        f"significantly ({kind}, Holm). For all at once {p_equals(p_value)} {kind}, and "
        f"{p_equals(folds)} over {len(experiment.folds)} folds. The median loss above chance is "
        f"{_median(drops):.3f}.",
        ("method", "seen", "unseen", "loss", "loss above chance", "folds lower", "p, folds", f"p, {kind[5:]}, Holm"),
        tuple(
            (
                lost.method,
                f"{lost.seen:.4f}",
                f"{lost.unseen:.4f}",
                signed(lost.loss),
                signed(lost.loss_above_chance),
                f"{lost.lower_folds} of {len(experiment.folds)}",
                written_p(lost.over_folds_above_chance),
                written_p(float(p)),
            )
            for lost, p in zip(drops, corrected, strict=True)
        ),
        tested=f"all methods {kind}",
    )


def _median(drops: list[Drop]) -> float:
    ordered = sorted(lost.loss_above_chance for lost in drops)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
