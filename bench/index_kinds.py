"""Which index for a collection's points: all of them compared, inverted lists, a graph, or the engine's own indexes.

    python -m bench.index_kinds [--items 100000 1000000 4000000] [--width 256]

Points are directions of a random subspace of 32 dimensions, as in ``filled_collection.py``. Each index is built,
written to disk and opened anew as a collection would do it; then its effort (lists, candidates) is doubled until sample
queries have a recall@10 of at least 0.95, and the median time of further single queries on one thread is printed, with
the seconds to build it and the bytes on disk. Inverted lists are those that collections use: what they hold of a point
depends on how many there are, and answers of rounded ones are scored again with the exact points. The engine's own
indexes answer through LanceDB.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import HnswSq, IvfPq

from bench.filled_collection import PointRetriever
from diptych.collection.search.approximate_index import ApproximateIndex

RECALL, QUERIES, K = 0.95, 100, 10
Ask = Callable[[np.ndarray, int], list[int]]


def main() -> int:
    """Measure every kind at every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    options = parser.parse_args()
    for items in options.items:
        points = drawn(items, options.width, 0)
        queries = drawn(2 * QUERIES, options.width, 1)
        truth = faiss.knn(queries, points, K, metric=faiss.METRIC_INNER_PRODUCT)[1]
        for kind in options.kinds:
            with tempfile.TemporaryDirectory(prefix="diptych-index-") as folder:
                started = time.perf_counter()
                ask, efforts = KINDS[kind](points, Path(folder))
                seconds = time.perf_counter() - started
                report(items, kind, seconds, Path(folder), measure(ask, efforts, queries, truth))
    return 0


def drawn(count: int, width: int, seed: int) -> np.ndarray:
    """Return random points, a part at a time."""
    retriever, rng = PointRetriever(width), np.random.default_rng(seed)
    rows = np.empty((count, width), dtype=np.float32)
    for start in range(0, count, 100_000):
        rows[start : start + 100_000] = retriever.points(rng, min(100_000, count - start))
    return rows


def measure(ask: Ask, efforts: list[int], queries: np.ndarray, truth: np.ndarray) -> tuple[int, float, float]:
    """Return the least effort with the recall that is wanted, that recall, and the median seconds of a query."""
    faiss.omp_set_num_threads(1)
    recall = 0.0
    for effort in efforts:
        found = [ask(query, effort) for query in queries[:QUERIES]]
        shares = [len({*one} & {*true}) / K for one, true in zip(found, truth[:QUERIES].tolist(), strict=True)]
        recall = statistics.mean(shares)
        if recall >= RECALL:
            break
    times = []
    for query in queries[QUERIES:]:
        started = time.perf_counter()
        ask(query, effort)
        times.append(time.perf_counter() - started)
    faiss.omp_set_num_threads(faiss.omp_get_max_threads())
    return effort, recall, statistics.median(times)


def report(items: int, kind: str, seconds: float, folder: Path, found: tuple[int, float, float]) -> None:
    """Print one line."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    effort, recall, median = found
    print(
        f"{items:>9,} {kind:<14} built in {seconds:6.0f} s, {size / 1e6:7.0f} MB, "
        f"recall {recall:.3f} at effort {effort}, {1000 * median:6.1f} ms a query",
        flush=True,
    )


def exact(points: np.ndarray, folder: Path) -> tuple[Ask, list[int]]:
    """Compare all points, mapped from disk."""
    np.save(folder / "points.npy", points)
    mapped = np.load(folder / "points.npy", mmap_mode="r")
    return lambda query, effort: np.argpartition(-(mapped @ query), K)[:K].tolist(), [1]


def inverted_lists(points: np.ndarray, folder: Path) -> tuple[Ask, list[int]]:
    """Return the index of collections."""
    ApproximateIndex.build(points, "inner_product").write(folder)
    index = ApproximateIndex.read(folder)
    assert index is not None

    def ask(query: np.ndarray, effort: int) -> list[int]:
        index.probes = effort
        rows = index.search(query[None], index.wanted(K))[1][0]
        return rows[np.argsort(-(points[rows] @ query))[:K]].tolist()

    return ask, [2**power for power in range(3, 14)]


def graph(points: np.ndarray, folder: Path) -> tuple[Ask, list[int]]:
    """Return a graph of eight bits a number (HNSW, Malkov and Yashunin 2018), which lies in memory."""
    index = faiss.index_factory(points.shape[1], "HNSW32,SQ8", faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 100
    index.train(points[:100_000])
    index.add(points)
    faiss.write_index(index, str(folder / "graph.faiss"))
    index = faiss.read_index(str(folder / "graph.faiss"))

    def ask(query: np.ndarray, effort: int) -> list[int]:
        index.hnsw.efSearch = effort
        rows = index.search(query[None], index.wanted(K))[1][0]
        return rows[np.argsort(-(points[rows] @ query))[:K]].tolist()

    return ask, [2**power for power in range(4, 12)]


def engine(make: Callable[..., Any], lists_each: int) -> Callable[[np.ndarray, Path], tuple[Ask, list[int]]]:
    """Return one of the engine's own indexes over a table of points, with a list for so many of ours."""

    def build(points: np.ndarray, folder: Path) -> tuple[Ask, list[int]]:
        column = pa.FixedSizeListArray.from_arrays(pa.array(points.ravel()), points.shape[1])
        rows = pa.table({"row": np.arange(len(points)), "vector": column})
        table = lancedb.connect(str(folder)).create_table("points", rows)
        lists = max(1, int(4 * len(points) ** 0.5) // lists_each)
        table.create_index("vector", config=make(distance_type="cosine", num_partitions=lists))
        table.wait_for_index([one.name for one in table.list_indices()], timeout=timedelta(hours=1))

        def ask(query: np.ndarray, effort: int) -> list[int]:
            search = table.search(query).nprobes(effort).refine_factor(10).select(["row", "_distance"]).limit(K)
            return search.to_arrow()["row"].to_pylist()

        return ask, [2**power for power in range(3, 13)]

    return build


KINDS: dict[str, Callable[[np.ndarray, Path], tuple[Ask, list[int]]]] = {
    "exact": exact,
    "lists": inverted_lists,
    "graph": graph,
    "engine-pq": engine(partial(IvfPq, num_sub_vectors=32), 1),
    "engine-hnsw-sq": engine(HnswSq, 8),
}


if __name__ == "__main__":
    sys.exit(main())
