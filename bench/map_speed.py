"""Mean average precision of 2,000 queries × 20,000 items: exactness, speed beside ranx and the sort, and memory.

    python -m bench.map_speed [--quick]

Needs the ``bench`` extra. Both libraries get the same scores of 10 classes; ours is timed from the ready score matrix
to MAP, ranx from ready ``Qrels`` and ``Run`` objects, compiled and warmed up, to MAP, which leaves out its sorting and
construction. ranx gets a part of the queries, by which its time is scaled. The sort is NumPy's of every row of the
scores. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
from ranx import Qrels, Run
from ranx import evaluate as ranx_evaluate

from bench.speed_report import SpeedReport, in_turns, speed_parser
from diptych.metrics import AP, SameLabel, evaluate_scores

CLASSES, REPEATS = 10, 3
SPEED_BAR = 20.0
SORT_BAR = 1.5
ERROR_BAR = 1e-12
MEMORY = 64 << 20


def plain_average_precision(scores: np.ndarray, relevant: np.ndarray) -> float:
    """Sort positions, walk down the ranking, add up the precision at each hit."""
    flags = relevant[np.argsort(-scores, kind="stable")]
    ranks = np.flatnonzero(flags) + 1
    return sum(hit / int(rank) for hit, rank in enumerate(ranks, start=1)) / len(ranks)


def ranx_objects(scores: np.ndarray, query_labels: np.ndarray, gallery_labels: np.ndarray) -> tuple[Qrels, Run]:
    """Build the judgements and rankings of ranx."""
    items = np.array([f"d{item:05d}" for item in range(scores.shape[1])])
    names = items.tolist()
    members = {label: dict.fromkeys(items[gallery_labels == label].tolist(), 1) for label in range(CLASSES)}
    qrels = Qrels({f"q{query:05d}": members[int(label)] for query, label in enumerate(query_labels)})
    run = Run({f"q{query:05d}": dict(zip(names, row.tolist(), strict=True)) for query, row in enumerate(scores)})
    return qrels, run


def main() -> int:
    """Measure, compare and return the exit code."""
    parser = speed_parser(__doc__)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--gallery", type=int, default=20_000)
    parser.add_argument("--ranx-queries", type=int, default=100, help="queries ranx gets; its time is scaled linearly")
    options = parser.parse_args()
    n_queries = options.queries or (500 if options.quick else 2_000)
    report = SpeedReport(__file__, options)

    rng = np.random.default_rng(0)
    query_labels = rng.integers(0, CLASSES, n_queries)
    gallery_labels = rng.integers(0, CLASSES, options.gallery)
    scores = rng.standard_normal((n_queries, options.gallery), dtype=np.float32)
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

    asked = min(options.ranx_queries, n_queries)
    objects = ranx_objects(distinct[:asked], query_labels[:asked], gallery_labels)
    disagreement = float(np.abs(ranx_evaluate(*objects, "map", return_mean=False) - exact.values[AP()][:asked]).max())
    runs = {
        "ours": lambda: evaluate_scores(scores, relevance, [AP()], memory=MEMORY),
        "ranx": lambda: ranx_evaluate(*objects, "map"),
        "sort": lambda: np.sort(scores, axis=1),
    }
    times = in_turns(runs, REPEATS)
    work = f"MAP, {n_queries:,} queries × {options.gallery:,} items"
    scaled = np.array(times["ranx"]) * n_queries / asked
    report.compare(work, times["ours"], scaled, peer="ranx", bar=SPEED_BAR, note=f"scaled from {asked} queries")
    report.compare(work, times["ours"], times["sort"], limit="sorting the scores", bar=1 / SORT_BAR)
    report.hold("largest error of a query beside a plain loop", error <= ERROR_BAR, f"{error:.1e}")
    report.hold("largest difference from ranx", disagreement <= 1e-9, f"{disagreement:.1e}")
    report.hold("our peak extra memory", peak <= MEMORY, f"{peak / 2**20:.1f} of {MEMORY / 2**20:g} MiB")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
