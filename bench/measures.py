"""Mean average precision beside ranx, ir_measures and pytrec_eval.

    python -m bench.measures [--quick]

All get the same distinct scores of 20 queries and 10 classes and return the same mean. Ours is timed from the score
matrix, the others from ready objects, so that what they need to be built is left out; ranx's objects hold the scores
sorted. Everything runs in one thread, by processor time. The bar is to be no slower than any of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from bench.report import SpeedReport, installed, speed_parser
from diptych.metrics import AP, SameLabel, evaluate_scores

CLASSES = 10
QUERIES = 20
REPEATS = 3
PEERS = ("ranx", "pytrec_eval", "ir_measures")


def peer_means(
    scores: np.ndarray, query_labels: np.ndarray, labels: np.ndarray
) -> dict[str, Callable[[], float] | None]:
    """Return how each library that is installed gets its mean average precision, everything it needs built before."""
    names = np.array([f"d{item}" for item in range(scores.shape[1])])
    members = [dict.fromkeys(names[labels == label].tolist(), 1) for label in range(CLASSES)]
    relevant = {f"q{query}": members[label] for query, label in enumerate(query_labels)}
    ranked = {f"q{query}": dict(zip(names, row.tolist(), strict=True)) for query, row in enumerate(scores)}
    found: dict[str, Callable[[], float] | None] = dict.fromkeys(PEERS)
    if installed("ranx"):
        import ranx

        objects = ranx.Qrels(relevant), ranx.Run(ranked)
        found["ranx"] = lambda: float(ranx.evaluate(*objects, "map"))
    if installed("pytrec_eval"):
        import pytrec_eval

        by_trec = pytrec_eval.RelevanceEvaluator(relevant, {"map"})
        found["pytrec_eval"] = lambda: float(np.mean([row["map"] for row in by_trec.evaluate(ranked).values()]))
    if installed("ir_measures"):
        import ir_measures

        evaluator = ir_measures.evaluator([ir_measures.AP], relevant)
        found["ir_measures"] = lambda: evaluator.calc_aggregate(ranked)[ir_measures.AP]
    return found


def main() -> int:
    """Measure and compare."""
    options = speed_parser(__doc__).parse_args()
    report = SpeedReport(__file__, options, threads=1)
    items, rng = 10_000 if options.quick else 100_000, np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, QUERIES), rng.integers(0, CLASSES, items)
    scores = rng.permuted(np.tile(np.arange(items, dtype=np.float32), (QUERIES, 1)), axis=1)

    def ours() -> float:
        return evaluate_scores(scores, SameLabel(*labels), [AP()])[AP()]

    peers = peer_means(scores, *labels)
    apart = max((abs(mean() - ours()) for mean in peers.values() if mean), default=0.0)
    report.hold("MAP as the others have it", apart < 1e-9, f"{apart:.1e} apart")
    work = f"MAP, {QUERIES} queries × {items:,} items"
    report.race(work, ours, peers, REPEATS, bars=dict.fromkeys(PEERS, 1.0))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
