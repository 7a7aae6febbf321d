"""Do two measures order the methods alike?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import kendalltau

from diptych.benchmark.reporting.comparison import LEVEL
from diptych.benchmark.reporting.holm import holm
from diptych.benchmark.reporting.method_results import AVERAGE_PRECISION, RANK_ONE, MethodResults
from diptych.benchmark.reporting.observation import Observation, untested, written_p
from diptych.benchmark.reporting.task_results import TaskResults

CLAIM = "CMC and MAP order the methods differently"


@dataclass(frozen=True)
class Inversion:
    """A pair of methods of which one has the better MAP and the other the better rank 1."""

    better_map: str
    better_rank_one: str
    map_difference: float
    rank_one_difference: float
    p_value: float


def orderings(task: TaskResults, measure: str = RANK_ONE) -> Observation:
    """Test the third observation of Liu et al.: the order by CMC, here its value at rank 1, is not the order by MAP.

    Kendall's τ says how alike the orders are. A pair of methods is a significant inversion when MAP prefers one and CMC
    the other and both preferences hold: its p-value is the larger of the two tests', corrected over all pairs by Holm.
    The claim is confirmed when there is at least one such pair, and its p-value is the smallest of these.
    """
    methods = [method for method in task.compared() if method in task.compared(measure)]
    if len(methods) < 3:
        return untested(CLAIM, task.title, f"It takes three methods whose records keep AP and {measure} per query.")
    maps = [method.mean() for method in methods]
    firsts = [method.mean(measure) for method in methods]
    written_tau = f"{kendalltau(maps, firsts).statistic:.2f}".replace("-", "−")
    pairs = list(combinations(range(len(methods)), 2))
    inverted = [(i, j) for i, j in pairs if (maps[i] - maps[j]) * (firsts[i] - firsts[j]) < 0]
    holding = dict(zip(pairs, _both_hold(task, methods, measure, pairs, set(inverted)), strict=True))
    found = [
        Inversion(methods[i].title, methods[j].title, maps[i] - maps[j], firsts[j] - firsts[i], holding[i, j])
        for i, j in inverted
    ]
    clear = sorted((one for one in found if one.p_value <= LEVEL), key=lambda one: one.p_value)
    return Observation(
        CLAIM,
        task.title,
        "confirmed" if clear else "not confirmed",
        min(holding.values()),
        f"Kendall’s τ between the orders of {len(methods)} methods is {written_tau}; {len(inverted)} of {len(pairs)} "
        f"pairs change their order, {len(clear)} of them significantly under both measures (Holm).",
        ("better MAP", "better at rank 1", "MAP ahead by", "rank 1 ahead by", "p, Holm"),
        tuple(
            (
                one.better_map,
                one.better_rank_one,
                f"{one.map_difference:.4f}",
                f"{one.rank_one_difference:.4f}",
                written_p(one.p_value),
            )
            for one in clear
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
        places = [task.compared(one).index(method) for method in methods]
        tested = task.comparison(one)
        if tested is not None:
            larger = np.maximum(larger, tested.p_values[np.ix_(places, places)])
    corrected = holm([float(larger[pair]) if pair in inverted else 1.0 for pair in pairs])
    return [float(p_value) for p_value in corrected]
