"""How long does learning from a large click log take, and how much memory?

    python -m bench.click_learning_speed [--quick] [--searches N] [--items N] [--queries N]

Searches are made up, twenty answers each, of items with random features of the default retriever's width, by a
retriever that costs nothing, and written to the SQLite file of a click log as the service writes them. What is measured
is what `diptych learn` does: reading that file, and learning, from the searches to the learned memory of queries. The
bars, for the default of a million searches and 100,000 items: at most ten minutes on two cores for both together, at
most 4 GB in all. The command exits with 1 when one is missed. The file takes about a gigabyte.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.speed_report import SpeedReport, speed_parser
from bench.written_log import write_click_log
from diptych.arrays import AnyArray, FloatArray
from diptych.collection.learning import SearchLog
from diptych.collection.learning.traffic_trial import Gain, LogGallery, TrafficTrial
from diptych.service.clicks.export import text_query_searches
from diptych.space import Space

WIDTH, POINTS, KINDS, SHOWN = 2560, 256, 200, 20
MINUTES_BAR, GIGABYTES_BAR = 10.0, 4.0


class FreeRetriever:
    """Points of pictures are a projection of their features, those of texts are drawn."""

    space = Space("cosine")

    def __init__(self, seed: int) -> None:
        self._projection = np.random.default_rng(seed).standard_normal((WIDTH, POINTS)).astype(np.float32)

    def query_features(self, texts: Sequence[str]) -> FloatArray:
        """Return the features of texts."""
        return np.random.default_rng(len(texts)).standard_normal((len(texts), POINTS)).astype(np.float32)

    def texts_to_points(self, features: AnyArray) -> FloatArray:
        """Return the points of texts: their features."""
        return features

    def images_to_points(self, features: AnyArray) -> FloatArray:
        """Return the points of pictures."""
        return np.asarray(features @ self._projection)


def made_up(n_searches: int, n_items: int, n_queries: int, path: Path, seed: int = 0) -> FloatArray:
    """Write searches whose visitors want some kinds of items to a click log, and return the items' features."""
    rng = np.random.default_rng(seed)
    kinds, kind = rng.standard_normal((KINDS, WIDTH)).astype(np.float32), rng.integers(0, KINDS, n_items)
    features = np.empty((n_items, WIDTH), dtype=np.float32)
    for start in range(0, n_items, 5000):
        own = kinds[kind[start : start + 5000]]
        features[start : start + 5000] = own + 1.5 * rng.standard_normal(own.shape).astype(np.float32)
    popularity = (1.0 + np.arange(n_queries)) ** -0.8
    asked = rng.choice(n_queries, n_searches, p=popularity / popularity.sum())
    shown = rng.integers(0, n_items, (n_queries, SHOWN)).astype(np.int32)[asked]
    wanted = kind[shown] % 7 == (asked % 7)[:, None]
    clicked = rng.random(shown.shape) < np.where(wanted, 0.9, 0.1) / np.arange(1, SHOWN + 1)
    searches, places = np.divmod(np.arange(shown.size, dtype=np.int32), SHOWN)
    columns = asked, rng.integers(0, max(1, n_searches // 10), n_searches), np.arange(n_searches, dtype=np.float64)
    queries = tuple(f"word{number} thing{number % 97}" for number in range(n_queries))
    names = tuple(f"{number:032x}" for number in range(n_items))
    write_click_log(
        SearchLog(queries, names, *columns, searches, shown.reshape(-1), places + 1, clicked.reshape(-1)), path
    )
    return features


def learned(path: Path, features: FloatArray) -> tuple[dict[str, float], Gain]:
    """Read a click log and learn from it; return the seconds of both, and the gain on later searches."""
    retriever: Any = FreeRetriever(0)
    start = time.perf_counter()
    log = SearchLog.from_searches(text_query_searches(path))
    read = time.perf_counter()
    rows = np.array([int(name, 16) for name in log.items])
    trial = TrafficTrial(retriever, retriever, log, LogGallery(log.items, features, rows), progress=lambda *_: None)
    trial.held_out()
    gain, _ = trial.repeated(reach=False)
    trial.visual_consistency()
    trial.learned()
    return {"reading": read - start, "learning": time.perf_counter() - read}, gain


def main() -> int:
    """Make a log, read it, learn from it, and print what that cost."""
    parser = speed_parser(__doc__)
    parser.add_argument("--searches", type=int)
    parser.add_argument("--items", type=int)
    parser.add_argument("--queries", type=int, default=30_000)
    options = parser.parse_args()
    searches = options.searches or (100_000 if options.quick else 1_000_000)
    items = options.items or (10_000 if options.quick else 100_000)
    report = SpeedReport(__file__, options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clicks.sqlite"
        features = made_up(searches, items, options.queries, path)
        seconds, gain = learned(path, features)
    work = f"{searches:,} searches of {items:,} items"
    report.bound(f"reading a click log of {work}, and learning", [sum(seconds.values())], 60 * MINUTES_BAR)
    report.bound(f"memory of learning from {work}", [_gigabytes()], GIGABYTES_BAR, unit="GB")
    print(f"reading took {seconds['reading']:.0f} s, learning {seconds['learning']:.0f} s")
    report.hold("the clicks are learned", gain.relative > 0, f"gain {gain.relative:+.0%} (p = {gain.p_value:.1g})")
    return report.finish()


def _gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)


if __name__ == "__main__":
    sys.exit(main())
