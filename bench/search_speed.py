"""Approximate search of 100,000 × 256 numbers beside bare indexes: recall, speed, and changes seen at once.

    python -m bench.search_speed [--quick] [--rows N]

Needs the ``search`` extra; hnswlib and usearch are compared where they are installed. The same clustered vectors go
into a collection, into the index of collections alone, and into bare indexes (faiss's inverted lists and HNSW, the HNSW
of the others) whose effort is raised until they reach the collection's recall among the ten nearest. Then all answer
the same queries, in turns, in batches and one by one: indexes with positions, the collection with ids of items. Texts
stand for the vectors, so that nothing but storing and searching is measured. The index of collections alone is measured
at growing sizes. Short texts, which may be names, are looked for among the words of as many pictures besides.
Everything runs in one thread, by processor time. Bars: a recall of 0.95, for collections 60 % of the speed of bare
lists in batches, and for short texts half of that of searching by points and by the engine's words one after the other.
The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa

from bench.filled_collection import PointRetriever
from bench.speed_report import SpeedReport, installed, speed_parser
from diptych.collection import Collection, Record
from diptych.collection.search.approximate_index import ApproximateIndex
from diptych.encoders.encoder import EncodedBatch
from diptych.space import Space

RECALL_BAR = 0.95
SPEED_BAR, WORDS_BAR = 0.60, 0.5
K = 10
SINGLE = 100
DIMENSIONS = 32
SIZES = (10_000, 30_000, 100_000, 300_000)
PEERS = ("faiss, inverted lists", "faiss, HNSW", "hnswlib", "usearch")
POSITIONS = "positions in faiss's lists"
Search = Callable[[np.ndarray], np.ndarray]


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


def in_a_subspace(rows: int, width: int, seed: int) -> np.ndarray:
    """Return unit vectors of a random subspace, which have no clusters that an index could find."""
    basis = np.random.default_rng(0).standard_normal((DIMENSIONS, width), dtype=np.float32)
    points = np.random.default_rng(seed).standard_normal((rows, DIMENSIONS), dtype=np.float32) @ basis
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def recall(truth: np.ndarray, found: np.ndarray) -> float:
    """Return the share of the true nearest that was found."""
    return float((truth[:, :, None] == found[:, None, :]).any(axis=2).mean())


def bare_searches(vectors: np.ndarray, queries: np.ndarray, truth: np.ndarray, bar: float) -> dict[str, Search]:
    """Build the bare indexes that are installed and raise their effort until they reach the recall."""
    found: dict[str, Search] = {}

    def tune(name: str, search: Search, set_effort: Callable[[int], object], step: int) -> None:
        for effort in range(step, 1024, step):
            set_effort(effort)
            if recall(truth, search(queries)) >= bar:
                break
        found[name] = search

    rows, width = vectors.shape
    lists = faiss.index_factory(width, f"IVF{int(4 * rows**0.5)},Flat", faiss.METRIC_INNER_PRODUCT)
    lists.train(vectors)
    lists.add(vectors)
    tune(PEERS[0], lambda asked: lists.search(asked, K)[1], lambda effort: setattr(lists, "nprobe", effort), 1)
    graph = faiss.index_factory(width, "HNSW32", faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 64
    graph.add(vectors)
    tune(PEERS[1], lambda asked: graph.search(asked, K)[1], lambda effort: setattr(graph.hnsw, "efSearch", effort), 4)
    if installed("hnswlib"):
        import hnswlib

        other = hnswlib.Index(space="ip", dim=width)
        other.init_index(max_elements=rows, M=32, ef_construction=64)
        other.set_num_threads(1)
        other.add_items(vectors)
        tune(PEERS[2], lambda asked: other.knn_query(asked, k=K)[0], lambda effort: other.set_ef(max(K, effort)), 4)
    if installed("usearch"):
        from usearch.index import Index

        last = Index(ndim=width, metric="ip", dtype="f32", connectivity=32, expansion_add=64)
        last.add(np.arange(rows), vectors, threads=1)

        def by_usearch(asked: np.ndarray) -> np.ndarray:
            return np.atleast_2d(last.search(asked, K, threads=1).keys)

        tune(PEERS[3], by_usearch, lambda effort: setattr(last, "expansion_search", effort), 4)
    return found


def changes_are_seen(collection: Collection, new: int) -> tuple[bool, bool]:
    """Add an item and remove it; return whether the next search sees each."""
    collection.add([Record(captions=[str(new)], id="the new one")])
    added = collection.search(str(new), k=1, target="texts")[0]
    collection.remove("the new one")
    after = collection.search(str(new), k=K, target="texts")
    return added.id == "the new one", all(answer.id != "the new one" for answer in after)


def one_by_one(search: Search, queries: np.ndarray) -> None:
    """Ask a few queries, each on its own."""
    for row in range(SINGLE):
        search(queries[row : row + 1])


def beside_bare_indexes(report: SpeedReport, rows: int, queries: np.ndarray, centres: np.ndarray) -> None:
    """Compare a collection with bare indexes of the same recall."""
    # One row more than is stored at first: it is added later.
    vectors = clustered(rows + 1, centres.shape[1], 1, centres)
    stored = vectors[:rows]
    _, truth = faiss.knn(queries, stored, K, metric=faiss.METRIC_INNER_PRODUCT)
    with tempfile.TemporaryDirectory() as folder:
        retriever = NumberedVectors(vectors)
        collection = Collection.create(Path(folder) / "collection", retriever, load_retriever=lambda _: retriever)
        collection.add([Record(captions=[str(row)], id=str(row)) for row in range(rows)])
        collection.build_index()
        row_of = {caption: int(item.id) for item in collection for caption in item.caption_ids}

        def ours(asked: np.ndarray) -> np.ndarray:
            return collection.nearest(asked, K, target="texts", exact=False)[0]

        reached = recall(truth, np.vectorize(row_of.__getitem__)(ours(queries)))
        report.hold(f"recall@{K}", reached >= RECALL_BAR, f"{reached:.4f}, to which the bare indexes are raised")
        bare, index = bare_searches(stored, queries, truth, reached), ApproximateIndex.build(stored, "inner_product")
        for work, ask, repeats, bars in (
            (f"{len(queries):,} queries at once", lambda search: search(queries), 7, {POSITIONS: SPEED_BAR}),
            (f"{SINGLE} queries one by one", lambda search: one_by_one(search, queries), 5, {}),
        ):
            asked = f"{rows:,} × {vectors.shape[1]}, {work}"
            report.race(
                f"index of {asked}",
                lambda ask=ask: ask(lambda some: index.search(some, K)[1]),
                {name: (lambda ask=ask, name=name: ask(bare[name])) if name in bare else None for name in PEERS},
                repeats,
                clock=time.process_time,
            )
            report.race(
                f"collection of {asked}",
                lambda ask=ask: ask(ours),
                {},
                repeats,
                limits={POSITIONS: lambda ask=ask: ask(bare[PEERS[0]])},
                bars=bars,
                clock=time.process_time,
            )
        seen, gone = changes_are_seen(collection, rows)
        report.hold("the next search sees an addition and a removal", seen and gone, f"{seen}, {gone}")
        collection.close()


def by_short_texts(report: SpeedReport, rows: int) -> None:
    """Ask for pictures by numbers that stand in their paths, beside points and words alone."""
    retriever = PointRetriever()
    points = retriever.points(np.random.default_rng(3), rows)
    columns = {
        "id": [f"{row:016x}" for row in range(rows)],
        "path": [f"{row % 100}/picture-{row}.jpg" for row in range(rows)],
        "content_hash": [f"{row:064x}" for row in range(rows)],
        "image_point": pa.FixedSizeListArray.from_arrays(points.ravel(), points.shape[1]),
    }
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection.create(Path(folder) / "collection", retriever, load_retriever=lambda _: retriever)
        collection.load(pa.table(columns))
        asked = [str(row) for row in range(rows - SINGLE, rows)]
        words = collection._state.store.words

        def apart() -> None:
            for text in asked:
                collection.search(text, k=K, hybrid=False)
                words.all_of([(text,)], 1000)

        report.race(
            f"search of {rows:,} pictures, {SINGLE} short texts",
            lambda: [collection.search(text, k=K) for text in asked],
            {},
            5,
            limits={"by points, and then the engine's words": apart},
            bars={"by points, and then the engine's words": WORDS_BAR},
            clock=time.process_time,
        )
        collection.close()


def growth(report: SpeedReport, sizes: Sequence[int], width: int) -> None:
    """Measure the index of collections at growing sizes, beside comparing every row."""
    queries = in_a_subspace(SINGLE, width, 2)
    for size in sizes:
        vectors = in_a_subspace(size, width, 1)
        index = ApproximateIndex.build(vectors, "inner_product")
        report.race(
            f"{SINGLE} searches one by one, rows",
            lambda index=index: one_by_one(lambda asked: index.search(asked, K)[1], queries),
            {},
            3,
            limits={"every row compared": lambda vectors=vectors: one_by_one(lambda asked: vectors @ asked.T, queries)},
            clock=time.process_time,
            size=size,
        )


def main() -> int:
    """Measure and compare."""
    parser = speed_parser(__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--queries", type=int, default=2_000)
    options = parser.parse_args()
    report = SpeedReport(__file__, options, threads=1)
    centres = np.random.default_rng(0).standard_normal((1000, options.width), dtype=np.float32)
    queries = clustered(options.queries, options.width, 2, centres)
    rows = options.rows or (20_000 if options.quick else 100_000)
    beside_bare_indexes(report, rows, queries, centres)
    by_short_texts(report, rows)
    growth(report, SIZES if options.quick else (*SIZES, 1_000_000, 4_000_000), options.width)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
