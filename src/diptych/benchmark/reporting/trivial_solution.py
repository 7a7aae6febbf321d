"""Does the trivial solution lose its place on unseen classes?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from diptych.arrays import FloatArray
from diptych.benchmark.reporting.comparison import LEVEL
from diptych.benchmark.reporting.experiment import Experiment
from diptych.benchmark.reporting.method_results import AVERAGE_PRECISION, MethodResults
from diptych.benchmark.reporting.observation import Observation, untested, written_p
from diptych.benchmark.reporting.query_shares import mean_by_query
from diptych.benchmark.reporting.sign_flips import larger_than_zero

CLAIM = "The trivial solution competes on seen classes and loses rank on unseen ones"
TRIVIAL = ("ts", "deep-ts")


def trivial_solution(experiment: Experiment, name: str = "ts") -> Observation:
    """Test the second observation of Liu et al.: comparing predicted labels works on seen classes only.

    The real-valued methods are ranked by MAP in every fold. The trivial solution competes when its mean rank on seen
    classes is in the better half; that its rank worsens on unseen ones is tested over folds, and over queries (its rank
    among the methods for the same query). Ranks do not care that all values shrink together.
    """
    pairs = [pair for pair in experiment.pairs if pair[0].n_bits is None]
    names = [seen.name for seen, _ in pairs]
    where = experiment.title
    if name not in names or len(pairs) < 3:
        return untested(CLAIM, where, f"It takes {name} and at least two other real-valued methods on all folds.")
    place = names.index(name)
    title = pairs[place][0].title
    seen, unseen = ([pair[side] for pair in pairs] for side in (0, 1))
    ranks = [_ranks_per_fold(methods)[place] for methods in (seen, unseen)]
    change = ranks[1] - ranks[0]
    over_folds, over_queries = larger_than_zero(change), _over_queries(seen, unseen, place)
    competes = bool(ranks[0].mean() <= (len(pairs) + 1) / 2)
    loses = bool(change.mean() > 0) and over_folds <= LEVEL
    queries = "" if over_queries is None else f", over queries p = {written_p(over_queries)}"
    return Observation(
        f"{CLAIM} ({title})",
        where,
        "confirmed" if competes and loses else "not confirmed",
        over_folds,
        f"{title} is {ranks[0].mean():.1f}th of {len(pairs)} on average on seen classes "
        f"({'in' if competes else 'not in'} the better half) and {ranks[1].mean():.1f}th on unseen ones; it loses "
        f"{change.mean():+.1f} places, over folds p = {written_p(over_folds)}{queries}.",
        ("fold", "rank on seen", "rank on unseen", "change"),
        tuple(
            (str(fold), f"{before:.1f}", f"{after:.1f}", f"{after - before:+.1f}")
            for fold, before, after in zip(experiment.seen.folds, *ranks, strict=True)
        ),
    )


def _ranks_per_fold(methods: Sequence[MethodResults]) -> FloatArray:
    """Return methods × folds; the best has rank 1, equal ones share the mean of their ranks."""
    values = np.stack([method.per_fold() for method in methods])
    return np.asarray(rankdata(-values, axis=0), dtype=np.float64)


def _over_queries(seen: Sequence[MethodResults], unseen: Sequence[MethodResults], place: int) -> float | None:
    tables = [[mean_by_query(method, AVERAGE_PRECISION) for method in methods] for methods in (seen, unseen)]
    shared = sorted(set.intersection(*(set(table) for tables_of_setting in tables for table in tables_of_setting)))
    if not shared:
        return None
    ranks = [
        rankdata([[-table[query] for query in shared] for table in of_setting], axis=0)[place] for of_setting in tables
    ]
    return larger_than_zero(ranks[1] - ranks[0])
