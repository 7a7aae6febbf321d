"""Approximate search of 100,000 × 256 numbers beside bare faiss: recall, speed, and changes seen at once.

Run ``python benchmarks/search_speed.py`` (needs the ``search`` extra). The same clustered vectors go into a collection
and into bare faiss indexes (inverted lists and HNSW) whose effort is raised until they reach the collection's recall
among the ten nearest. Then all answer the same queries, in turns, in batches and one by one; bare faiss is credited
with the fastest of its indexes. Texts stand for the vectors, so that nothing but storing and searching is measured. The
command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from diptych.collection import Collection, Record
from diptych.encoders.encoder import EncodedBatch
from diptych.space import Space

RECALL_BAR = 0.95
SPEED_BAR = 0.60
K = 10


class NumberedVectors:
    """A retriever whose texts are row numbers of a matrix."""

    name = "vectors"
    space = Space("cosine")
    fingerprint = image_fingerprint = text_fingerprint = "vectors"
    cutoff = 0.5

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = vectors

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        """There are no pictures."""
        return iter(())

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        """Return the rows of the numbers."""
        return self._vectors[[int(text) for text in texts]]

    def texts_to_points(self, features: np.ndarray) -> np.ndarray:
        """Return the features."""
        return features

    images_to_points = texts_to_points
    encode_texts = text_features

    def encode_images(self, items: Sequence[Any]) -> np.ndarray:
        """There are no pictures."""
        raise NotImplementedError

    def probability(self, scores: np.ndarray, direction: str) -> np.ndarray:
        """Return something between 0 and 1."""
        del direction
        return np.clip((1 + np.asarray(scores)) / 2, 0, 1)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write an empty folder."""
        Path(folder).mkdir(parents=True, exist_ok=True)


def clustered(rows: int, width: int, seed: int, centres: np.ndarray) -> np.ndarray:
    """Return unit vectors around centres."""
    rng = np.random.default_rng(seed)
    points = centres[rng.integers(0, len(centres), rows)]
    points = points + 0.7 * rng.standard_normal((rows, width), dtype=np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def recall(truth: np.ndarray, found: np.ndarray) -> float:
    """Return the share of the true nearest that was found."""
    return float((truth[:, :, None] == found[:, None, :]).any(axis=2).mean())


def bare_indexes(vectors: np.ndarray, queries: np.ndarray, truth: np.ndarray, bar: float) -> dict[str, Any]:
    """Build bare faiss indexes and raise their effort until they reach the recall."""
    lists = faiss.index_factory(vectors.shape[1], f"IVF{int(4 * len(vectors) ** 0.5)},Flat", faiss.METRIC_INNER_PRODUCT)
    lists.train(vectors)
    graph = faiss.index_factory(vectors.shape[1], "HNSW32", faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 64
    graph.hnsw.efSearch = K
    for index in (lists, graph):
        index.add(vectors)
    while recall(truth, lists.search(queries, K)[1]) < bar and lists.nprobe < lists.nlist:
        lists.nprobe += 1
    while recall(truth, graph.search(queries, K)[1]) < bar and graph.hnsw.efSearch < 1024:
        graph.hnsw.efSearch += 4
    return {"inverted lists": lists, "HNSW": graph}


def in_turns(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the best time of each, measured in turns, so that other work on the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: min(values) for name, values in times.items()}


def changes_are_seen(collection: Collection, new: int) -> tuple[bool, bool, float]:
    """Add an item and remove it; return whether the next search sees each, and the time of addition and search."""
    start = time.perf_counter()
    collection.add([Record(captions=[str(new)], id="the new one")])
    added = collection.search(str(new), k=1, target="texts")[0]
    seconds = time.perf_counter() - start
    collection.remove("the new one")
    after = collection.search(str(new), k=K, target="texts")
    return added.id == "the new one", all(answer.id != "the new one" for answer in after), seconds


def main() -> int:
    """Measure, print a table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--queries", type=int, default=2_000)
    options = parser.parse_args()

    centres = np.random.default_rng(0).standard_normal((1000, options.width), dtype=np.float32)
    # One row more than is stored at first: it is added later.
    vectors = clustered(options.rows + 1, options.width, 1, centres)
    queries = clustered(options.queries, options.width, 2, centres)
    stored = vectors[: options.rows]
    _, truth = faiss.knn(queries, stored, K, metric=faiss.METRIC_INNER_PRODUCT)

    with tempfile.TemporaryDirectory() as folder:
        retriever = NumberedVectors(vectors)
        collection = Collection.create(Path(folder) / "collection", retriever, load_retriever=lambda _: retriever)
        start = time.perf_counter()
        collection.add([Record(captions=[str(row)], id=str(row)) for row in range(options.rows)])
        print(f"{options.rows} x {options.width}: added in {time.perf_counter() - start:.1f} s", end=", ")
        start = time.perf_counter()
        collection.build_index()
        print(f"indexed in {time.perf_counter() - start:.1f} s")

        rows = {caption: int(item.id) for item in collection for caption in item.caption_ids}
        ids, _ = collection.nearest(queries, K, target="texts", exact=False)
        reached = recall(truth, np.vectorize(rows.__getitem__)(ids))
        bare = bare_indexes(stored, queries, truth, reached)

        single = queries[:300]
        batch_times = in_turns(
            {
                "collection": lambda: collection.nearest(queries, K, target="texts", exact=False),
                **{name: lambda index=index: index.search(queries, K) for name, index in bare.items()},
            },
            repeats=7,
        )
        single_times = in_turns(
            {
                "collection": lambda: [
                    collection.nearest(single[row : row + 1], K, target="texts", exact=False)
                    for row in range(len(single))
                ],
                **{
                    name: lambda index=index: [index.search(single[row : row + 1], K) for row in range(len(single))]
                    for name, index in bare.items()
                },
            },
            repeats=5,
        )
        seen, gone, seconds = changes_are_seen(collection, options.rows)
        collection.close()

    print(f"recall@{K}: {reached:.4f} (bar {RECALL_BAR}); bare indexes raised to the same")
    print(f"{'':<18}{'queries/s, batch':>18}{'queries/s, single':>20}")
    for name in batch_times:
        batch_speed, single_speed = options.queries / batch_times[name], len(single) / single_times[name]
        print(f"{name:<18}{batch_speed:>18,.0f}{single_speed:>20,.0f}")
    fastest = {
        kind: min(value for name, value in times.items() if name != "collection") / times["collection"]
        for kind, times in (("batch", batch_times), ("single", single_times))
    }
    print(f"share of the fastest bare index: batch {fastest['batch']:.0%} (bar {SPEED_BAR:.0%}), ", end="")
    print(f"single {fastest['single']:.0%}")
    print(f"an addition is seen by the next search: {seen} ({seconds * 1e3:.0f} ms for both), a removal: {gone}")
    bars = {"recall": reached >= RECALL_BAR, "speed": fastest["batch"] >= SPEED_BAR, "addition": seen, "removal": gone}
    missed = [name for name, met in bars.items() if not met]
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
