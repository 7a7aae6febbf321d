"""Does the trivial solution lose its place on unseen classes?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from diptych.arrays import FloatArray
from diptych.benchmark.reporting.comparison import LEVEL
from diptych.benchmark.reporting.experiment import Experiment
from diptych.benchmark.reporting.method_results import MethodResults
from diptych.benchmark.reporting.observation import Observation, p_equals, signed, untested
from diptych.benchmark.reporting.sign_flips import larger_than_zero

CLAIM = "The trivial solution competes on seen classes and loses rank on unseen ones"
TRIVIAL = ("ts", "deep-ts")


def trivial_solution(experiment: Experiment, name: str = "ts") -> Observation:
    """Test the second observation of Liu et al.: comparing predicted labels works on seen classes only.

    The real-valued methods are ranked by MAP in every fold. The trivial solution competes when its mean rank on seen
    classes is in the better half; that its rank worsens on unseen ones is tested over folds, and over queries (its rank
    among the methods for the same query). Ranks do not care that all values shrink together.
    """
    kept = [number for number, pair in enumerate(experiment.pairs) if pair[0].n_bits is None]
    pairs = [experiment.pairs[number] for number in kept]
    names = [seen.name for seen, _ in pairs]
    where = experiment.title
    if name not in names or len(pairs) < 3:
        return untested(CLAIM, where, f"It takes {name} and at least two other real-valued methods on all folds.")
    place = names.index(name)
    title = pairs[place][0].title
    seen, unseen = ([pair[side] for pair in pairs] for side in (0, 1))
    ranks = [_ranks_per_fold(methods)[place] for methods in (seen, unseen)]
    change = ranks[1] - ranks[0]
    over_folds, over_queries = larger_than_zero(change), _over_queries(experiment, kept, place)
    competes = bool(ranks[0].mean() <= (len(pairs) + 1) / 2)
    loses = bool(change.mean() > 0) and over_folds <= LEVEL
    queries = "" if over_queries is None else f" ({p_equals(over_queries)} over queries)"
    return Observation(
        f"{CLAIM} ({title})",
        where,
        "confirmed" if competes and loses else "not confirmed",
        over_folds,
        f"The mean rank of {title} among {len(pairs)} methods is {ranks[0].mean():.1f} on seen classes "
        f"({'in' if competes else 'not in'} the better half) and {ranks[1].mean():.1f} on unseen ones: "
        f"{signed(change.mean(), 1)} places, {p_equals(over_folds)} over folds{queries}.",
        ("fold", "rank on seen", "rank on unseen", "change"),
        tuple(
            (str(fold), f"{before:.1f}", f"{after:.1f}", signed(after - before, 1))
            for fold, before, after in zip(experiment.seen.folds, *ranks, strict=True)
        ),
        tested="the loss of rank over folds",
    )


def _ranks_per_fold(methods: Sequence[MethodResults]) -> FloatArray:
    """Return methods × folds; the best has rank 1, equal ones share the mean of their ranks."""
    values = np.stack([method.per_fold() for method in methods])
    return np.asarray(rankdata(-values, axis=0), dtype=np.float64)


def _over_queries(experiment: Experiment, kept: Sequence[int], place: int) -> float | None:
    if experiment.by_query is None:
        return None
    seen, unseen = (rankdata(-values[:, kept], axis=1)[:, place] for values in experiment.by_query)
    return larger_than_zero(unseen - seen)
