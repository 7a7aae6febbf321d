"""How long learning from a large click log takes, and how much memory.

    python -m bench.click_learning [--quick] [--searches N] [--items N] [--queries N]

Searches are made up, twenty answers each, of items with random features of the default retriever's width, and written
to the tables of an empty collection as the service writes them. Measured is what `diptych learn` does: reading them,
and learning, from the searches to the learned memory of queries, by a retriever that costs nothing. Bars, for a million
searches and 100,000 items: at most ten minutes on two cores, and at most 4 GB in all. The tables take about a gigabyte.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.report import SpeedReport, peak_resident_bytes, speed_parser
from diptych.arrays import AnyArray, FloatArray
from diptych.collection.learning import SearchLog
from diptych.collection.learning.traffic_trial import Gain, LogGallery, TrafficTrial
from diptych.collection.store.dialect import Connection
from diptych.collection.store.opening import create_store
from diptych.collection.store.store import Store
from diptych.service.clicks.exports import text_query_searches
from diptych.space import Space

WIDTH = 2560
POINTS = 256
KINDS = 200
SHOWN = 20
SECONDS_BAR = 600.0
GIGABYTES_BAR = 4.0
SEARCH_COLUMNS = ("id", "name", "time", "query", "plain", "target", "model", "fingerprint", "no_good_match", "clicked")
PAGE_COLUMNS = ("search", "first", "length", "time", "items")
CLICK_COLUMNS = ("search", "item", "position", "kind", "time")


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


def make_log(n_searches: int, n_items: int, n_queries: int, store: Store, seed: int = 0) -> FloatArray:
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
    queries = [f"word{number} thing{number % 97}" for number in range(n_queries)]
    visitors = rng.integers(0, max(1, n_searches // 10), n_searches).tolist()

    def write(db: Connection) -> None:
        db.load("query", ("id", "text"), enumerate(queries, start=1))
        searches = enumerate(zip(asked.tolist(), clicked.any(axis=1).tolist(), visitors, strict=True), start=1)
        facts = (1, "images", "default", "f", 0)
        db.load(
            "search",
            (*SEARCH_COLUMNS, "visitor"),
            (
                (number, f"{number:032x}", float(number - 1), query + 1, *facts, int(has_click), f"{visitor:016x}")
                for number, (query, has_click, visitor) in searches
            ),
        )
        pages = enumerate(shown, start=1)
        rows = ((number, 1, SHOWN, float(number - 1), json.dumps(item_names(items))) for number, items in pages)
        db.load("page", PAGE_COLUMNS, rows)
        db.load("click", CLICK_COLUMNS, click_rows(shown, clicked))

    store.write(write)
    return features


def item_names(items: np.ndarray) -> list[str]:
    """Return the ids of items."""
    return [f"{number:032x}" for number in items.tolist()]


def click_rows(shown: np.ndarray, clicked: np.ndarray) -> Iterator[tuple[int, str, int, str, float]]:
    """Yield the search, the item, the position, the kind and the time of each click."""
    for search, place in np.argwhere(clicked).tolist():
        yield search + 1, f"{shown[search, place]:032x}", place + 1, "open", float(search)


def learn(store: Store, features: FloatArray) -> tuple[dict[str, float], Gain]:
    """Read a click log and learn from it; return the seconds of both, and the gain on later searches."""
    retriever: Any = FreeRetriever(0)
    start = time.perf_counter()
    log = SearchLog.from_searches(text_query_searches(store))
    read = time.perf_counter()
    rows = np.array([int(name, 16) for name in log.items])
    trial = TrafficTrial(retriever, retriever, log, LogGallery(log.items, features, rows), progress=lambda *_: None)
    trial.held_out()
    gain, *_ = trial.gains(reach=False)
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
        store = create_store(Path(folder) / "store")
        features = make_log(searches, items, options.queries, store)
        seconds, gain = learn(store, features)
        store.close()
    work = f"{searches:,} searches of {items:,} items"
    report.bound(f"reading a click log of {work}, and learning", [sum(seconds.values())], SECONDS_BAR)
    memory = [peak_resident_bytes() / 1e9]
    report.bound(f"memory of learning from {work}", memory, GIGABYTES_BAR, unit="GB")
    print(f"reading took {seconds['reading']:.0f} s, learning {seconds['learning']:.0f} s")
    report.hold("the clicks are learned", gain.relative > 0, f"gain {gain.relative:+.0%} (p = {gain.p_value:.1g})")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
