"""Measures beside ranx, ir_measures and pytrec_eval, and their cost from 1,000 to 1,000,000 items.

    python -m bench.measures_speed [--quick]

Everybody gets the same distinct scores of 10 classes and returns the same mean: average precision, precision among the
first ten, normalised discounted cumulative gain of the first ten. Ours is timed from the score matrix, ranx from ready
``Qrels`` and ``Run`` objects, compiled, and the two around trec_eval from ready dictionaries, so that what they need to
be built is left out. ranx's objects hold the scores sorted, so its time has no sorting. The cost of average precision
is measured at growing galleries, beside sorting the items, which no measure of whole rankings avoids. Everything runs
in one thread, by processor time. The bar is to be no slower than any of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from bench.speed_report import SpeedReport, installed, speed_parser
from diptych.metrics import AP, NDCG, Measure, Precision, SameLabel, evaluate_scores

CLASSES, QUERIES, REPEATS = 10, 20, 3
# Ours, and what ranx, pytrec_eval and ir_measures call it.
MEASURES: dict[str, tuple[Measure, str, str, str]] = {
    "MAP": (AP(), "map", "map", "AP"),
    "precision@10": (Precision(10), "precision@10", "P_10", "P@10"),
    "NDCG@10": (NDCG(10, "ideal"), "ndcg@10", "ndcg_cut_10", "nDCG@10"),
}
PEERS = {"ranx": "ranx", "pytrec_eval": "pytrec_eval", "ir_measures": "ir_measures"}


class Ranking:
    """Distinct scores of a gallery, and who is relevant."""

    def __init__(self, items: int) -> None:
        rng = np.random.default_rng(0)
        self.query_labels, self.labels = rng.integers(0, CLASSES, QUERIES), rng.integers(0, CLASSES, items)
        self.scores = rng.permuted(np.tile(np.arange(items, dtype=np.float32), (QUERIES, 1)), axis=1)

    def ours(self, measure: Measure) -> float:
        """Return our mean."""
        return evaluate_scores(self.scores, SameLabel(self.query_labels, self.labels), [measure])[measure]

    def dictionaries(self) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
        """Return judgements and rankings as the other libraries take them."""
        names = np.array([f"d{item}" for item in range(len(self.labels))])
        members = [dict.fromkeys(names[self.labels == label].tolist(), 1) for label in range(CLASSES)]
        judged = {f"q{query}": members[label] for query, label in enumerate(self.query_labels)}
        ranked = {f"q{query}": dict(zip(names, row.tolist(), strict=True)) for query, row in enumerate(self.scores)}
        return judged, ranked


def peer_means(ranking: Ranking) -> dict[str, Callable[[str], float] | None]:
    """Return how each library that is installed gets its mean, everything it needs built before."""
    judged, ranked = ranking.dictionaries()
    found: dict[str, Callable[[str], float] | None] = dict.fromkeys(PEERS)
    if installed("ranx"):
        import ranx

        objects = ranx.Qrels(judged), ranx.Run(ranked)
        found["ranx"] = lambda name: float(ranx.evaluate(*objects, MEASURES[name][1]))
    if installed("pytrec_eval"):
        import pytrec_eval

        evaluators = {name: pytrec_eval.RelevanceEvaluator(judged, {names[2]}) for name, names in MEASURES.items()}

        def by_trec(name: str) -> float:
            per_query = evaluators[name].evaluate(ranked)
            return float(np.mean([values[MEASURES[name][2]] for values in per_query.values()]))

        found["pytrec_eval"] = by_trec
    if installed("ir_measures"):
        import ir_measures

        parsed = {name: ir_measures.parse_measure(names[3]) for name, names in MEASURES.items()}
        evaluator = ir_measures.evaluator(parsed.values(), judged)
        found["ir_measures"] = lambda name: evaluator.calc_aggregate(ranked)[parsed[name]]
    return found


def main() -> int:
    """Measure and compare."""
    options = speed_parser(__doc__).parse_args()
    report = SpeedReport(__file__, options, threads=1)
    items = 10_000 if options.quick else 100_000
    ranking = Ranking(items)
    means = peer_means(ranking)
    for name, (measure, *_) in MEASURES.items():
        ours = ranking.ours(measure)
        apart = max((abs(mean(name) - ours) for mean in means.values() if mean), default=0.0)
        report.hold(f"{name} as the others have it", apart < 1e-9, f"{apart:.1e} apart")
        report.race(
            f"{name}, {QUERIES} queries × {items:,} items",
            lambda measure=measure: ranking.ours(measure),
            {peer: None if mean is None else lambda mean=mean, name=name: mean(name) for peer, mean in means.items()},
            REPEATS,
            bars=dict.fromkeys(PEERS, 1.0),
            clock=time.process_time,
        )
    for size in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000):
        ranking = Ranking(size)
        report.race(
            f"MAP of {QUERIES} queries, items",
            lambda ranking=ranking: ranking.ours(AP()),
            {},
            REPEATS,
            limits={"sorting the items": lambda ranking=ranking: np.argsort(ranking.scores, axis=1)},
            clock=time.process_time,
            size=size,
        )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
