"""Mean average precision of 2,000 queries × 20,000 items: exactness, speed beside ranx, and memory.

Run ``python benchmarks/map_speed.py`` (needs the ``bench`` extra). Both libraries get the same scores of 10 classes;
ours is timed from the ready score matrix to MAP, ranx from ready ``Qrels`` and ``Run`` objects (compiled and warmed
up) to MAP, which leaves out its sorting and construction; those are reported apart. The command exits with 1 when a
bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from ranx import Qrels, Run
from ranx import evaluate as ranx_evaluate

from diptych.metrics import AP, SameLabel, evaluate_scores

CLASSES = 10
SPEED_BAR = 20.0
ERROR_BAR = 1e-12
MEMORY = 64 << 20


def plain_average_precision(scores: np.ndarray, relevant: np.ndarray) -> float:
    """Sort positions, walk down the ranking, add up the precision at each hit."""
    flags = relevant[np.argsort(-scores, kind="stable")]
    ranks = np.flatnonzero(flags) + 1
    return sum(hit / int(rank) for hit, rank in enumerate(ranks, start=1)) / len(ranks)


def seconds(run: Callable[[], object], repeats: int) -> float:
    """Return the best of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def ranx_objects(scores: np.ndarray, query_labels: np.ndarray, gallery_labels: np.ndarray) -> tuple[Qrels, Run]:
    """Build the judgements and rankings of ranx."""
    items = np.array([f"d{item:05d}" for item in range(scores.shape[1])])
    names = items.tolist()
    members = {label: dict.fromkeys(items[gallery_labels == label].tolist(), 1) for label in range(CLASSES)}
    qrels = Qrels({f"q{query:05d}": members[int(label)] for query, label in enumerate(query_labels)})
    run = Run({f"q{query:05d}": dict(zip(names, row.tolist(), strict=True)) for query, row in enumerate(scores)})
    return qrels, run


def ranx_times(
    scores: np.ndarray, query_labels: np.ndarray, gallery_labels: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """Return seconds to construct, seconds of ``evaluate`` alone, and the values per query."""
    warm_up = ranx_objects(scores[:2], query_labels[:2], gallery_labels)
    ranx_evaluate(*warm_up, "map")
    start = time.perf_counter()
    qrels, run = ranx_objects(scores, query_labels, gallery_labels)
    construction = time.perf_counter() - start
    evaluation = seconds(lambda: ranx_evaluate(qrels, run, "map"), repeats=2)
    values = ranx_evaluate(qrels, run, "map", return_mean=False)
    return construction, evaluation, np.asarray(values)


def main() -> int:
    """Measure, print a table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--gallery", type=int, default=20_000)
    parser.add_argument("--ranx-queries", type=int, default=100, help="queries ranx gets; its time is scaled linearly")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    query_labels = rng.integers(0, CLASSES, options.queries)
    gallery_labels = rng.integers(0, CLASSES, options.gallery)
    scores = rng.standard_normal((options.queries, options.gallery), dtype=np.float32)
    scores += 0.5 * (query_labels[:, None] == gallery_labels)
    relevance = SameLabel(query_labels, gallery_labels)

    tracemalloc.start()
    evaluate_scores(scores, relevance, [AP()], memory=MEMORY)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    # A plain loop must break float32 ties by some order. Ours is compared on the same scores made distinct by rank.
    distinct = np.argsort(np.argsort(scores, axis=1, kind="stable"), axis=1).astype(np.float32)
    exact = evaluate_scores(distinct, relevance, [AP()], memory=MEMORY)
    reference = [
        plain_average_precision(row, gallery_labels == label) for row, label in zip(distinct, query_labels, strict=True)
    ]
    error = float(np.abs(exact.values[AP()] - reference).max())

    asked = min(options.ranx_queries, options.queries)
    # Timed before and after ranx and the slower one taken, so that other work on the machine cannot favour us.
    ours = seconds(lambda: evaluate_scores(scores, relevance, [AP()], memory=MEMORY), repeats=2)
    construction, evaluation, ranx_values = ranx_times(distinct[:asked], query_labels[:asked], gallery_labels)
    ours = max(ours, seconds(lambda: evaluate_scores(scores, relevance, [AP()], memory=MEMORY), repeats=2))
    scale = options.queries / asked
    disagreement = float(np.abs(ranx_values - exact.values[AP()][:asked]).max())
    ratio, full_ratio = evaluation * scale / ours, (construction + evaluation) * scale / ours

    print(f"{options.queries} queries x {options.gallery} items, {CLASSES} classes, MAP {exact[AP()]:.4f}")
    print(f"ranx measured on {asked} queries, times multiplied by {scale:g}")
    rows = [
        ("ours: scores to MAP, ties exact", f"{ours:.2f} s", ""),
        ("ranx: evaluate() on ready objects", f"{evaluation * scale:.2f} s", f"{ratio:.1f}x (bar {SPEED_BAR:g}x)"),
        ("ranx: construction and evaluate()", f"{(construction + evaluation) * scale:.2f} s", f"{full_ratio:.1f}x"),
        ("largest error per query, plain loop", f"{error:.1e}", f"bar {ERROR_BAR:g}"),
        ("largest difference from ranx", f"{disagreement:.1e}", ""),
        ("our peak extra memory", f"{peak / 2**20:.1f} MiB", f"bound {MEMORY / 2**20:g} MiB"),
    ]
    for name, value, note in rows:
        print(f"{name:<38}{value:>12}  {note}")
    missed = [
        name
        for name, met in (
            ("exactness", error <= ERROR_BAR),
            ("speed", ratio >= SPEED_BAR),
            ("memory", peak <= MEMORY),
            ("agreement with ranx", disagreement <= 1e-9),
        )
        if not met
    ]
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
