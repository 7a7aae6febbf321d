"""Search beside bare indexes: a collection of 100,000 × 256 numbers, and 1,000,000 codes of 64 bits.

    python -m bench.search [--quick]

Needs the ``search`` extra. The same clustered vectors go into a collection and into bare inverted lists of faiss, whose
effort is raised until they reach the collection's recall among the ten nearest. Then both answer the same queries in
turns: the lists with positions of an array in memory, the collection with ids of items, after it has asked for changes
of others. Texts stand for the vectors, so that nothing but storing and searching is measured. Codes are searched
exactly, beside faiss, plain NumPy and, where it is installed, usearch. Everything runs in one thread, by processor
time. Bars: a recall of 0.95, 60 % of the speed of bare lists in batches, 80 % of faiss's on codes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import faiss
import numpy as np

from bench.filled_collection import PointRetriever
from bench.report import SpeedReport, installed, speed_parser
from diptych.codes import nearest_codes
from diptych.collection import Collection, Record

RECALL_BAR = 0.95
BATCH_BAR = 0.60
FAISS_CODES_BAR = 0.8
NUMPY_BAR = 4.0
K = 10
WIDTH = 256
SINGLE = 100
CODE_BYTES = 8
LISTS = "faiss, inverted lists, in memory"
Search = Callable[[np.ndarray], np.ndarray]


class NumberedVectors(PointRetriever):
    """A retriever whose texts are row numbers of a matrix."""

    def __init__(self, vectors: np.ndarray) -> None:
        super().__init__(vectors.shape[1])
        self._vectors = vectors

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        """Return the rows of the numbers."""
        return self._vectors[[int(text) for text in texts]]

    encode_texts = text_features


def clustered(rows: int, seed: int, centres: np.ndarray) -> np.ndarray:
    """Return unit vectors around centres."""
    rng = np.random.default_rng(seed)
    points = centres[rng.integers(0, len(centres), rows)]
    points = points + 0.7 * rng.standard_normal((rows, centres.shape[1]), dtype=np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def recall(truth: np.ndarray, found: np.ndarray) -> float:
    """Return the share of the true nearest that was found."""
    return float((truth[:, :, None] == found[:, None, :]).any(axis=2).mean())


def bare_lists(vectors: np.ndarray, queries: np.ndarray, truth: np.ndarray, bar: float) -> Search:
    """Build bare inverted lists and raise their effort until they reach the recall."""
    rows, width = vectors.shape
    lists = faiss.index_factory(width, f"IVF{int(4 * rows**0.5)},Flat", faiss.METRIC_INNER_PRODUCT)
    lists.train(vectors)
    lists.add(vectors)
    lists.nprobe = 1
    while recall(truth, lists.search(queries, K)[1]) < bar and lists.nprobe < lists.nlist:
        lists.nprobe += 1
    return lambda asked: lists.search(asked, K)[1]


def one_by_one(search: Search, queries: np.ndarray) -> None:
    """Ask a few queries, each on its own."""
    for row in range(SINGLE):
        search(queries[row : row + 1])


def vectors_in_a_collection(report: SpeedReport, rows: int, n_queries: int) -> None:
    """Compare a collection with bare indexes of the same recall, and look for a change at once."""
    centres = np.random.default_rng(0).standard_normal((1000, WIDTH), dtype=np.float32)
    # One row more than is stored at first: it is added later.
    vectors, queries = clustered(rows + 1, 1, centres), clustered(n_queries, 2, centres)
    stored = vectors[:rows]
    _, truth = faiss.knn(queries, stored, K, metric=faiss.METRIC_INNER_PRODUCT)
    retriever = NumberedVectors(vectors)
    with (
        tempfile.TemporaryDirectory() as folder,
        Collection.create(Path(folder) / "collection", retriever, load_retriever=lambda _: retriever) as collection,
    ):
        collection.add([Record(captions=[str(row)], id=str(row)) for row in range(rows)])
        collection.build_index()
        row_of = {caption: int(item.id) for item in collection for caption in item.caption_ids}

        def ours(asked: np.ndarray) -> np.ndarray:
            return collection.nearest(asked, K, target="texts", exact=False)[0]

        reached = recall(truth, np.vectorize(row_of.__getitem__)(ours(queries)))
        report.hold(f"recall@{K}", reached >= RECALL_BAR, f"{reached:.4f}, to which the bare lists are raised")
        bare = bare_lists(stored, queries, truth, reached)
        asks: dict[str, Callable[[Search], object]] = {
            f"{n_queries:,} queries at once": lambda search: search(queries),
            f"{SINGLE} queries one by one": lambda search: one_by_one(search, queries),
        }
        for work, ask in asks.items():
            bars = {LISTS: BATCH_BAR} if "at once" in work else {}
            peers = {LISTS: lambda ask=ask: ask(bare)}
            report.race(f"collection of {rows:,} × {WIDTH}, {work}", lambda ask=ask: ask(ours), peers, 5, bars=bars)
        collection.add([Record(captions=[str(rows)], id="new")])
        added = collection.search(str(rows), k=1, target="texts")[0].id == "new"
        collection.remove("new")
        gone = all(answer.id != "new" for answer in collection.search(str(rows), k=K, target="texts"))
        report.hold("the next search sees an addition and a removal", added and gone, f"{added}, {gone}")


def codes(report: SpeedReport, n_codes: int, rounds: int) -> None:
    """Compare the exact search of codes with other libraries."""
    rng = np.random.default_rng(1)
    gallery, query = (rng.integers(0, 256, (rows, CODE_BYTES), dtype=np.uint8) for rows in (n_codes, 1))
    words = gallery.view(np.uint64)[:, 0]
    flat = faiss.IndexBinaryFlat(8 * CODE_BYTES)
    flat.add(gallery)

    def by_numpy() -> np.ndarray:
        far = np.bitwise_count(words ^ query.view(np.uint64)[0, 0])
        return np.sort(far[np.argpartition(far, K)[:K]])

    runs: dict[str, Callable[[], np.ndarray] | None] = {
        "faiss": lambda: flat.search(query, K)[0],
        "NumPy": by_numpy,
        "usearch": None,
    }
    if installed("usearch"):
        from usearch.index import MetricKind
        from usearch.index import search as usearch_search

        runs["usearch"] = lambda: usearch_search(gallery, query, K, MetricKind.Hamming, exact=True).distances
    expected = nearest_codes(query, gallery, K)[0].ravel()
    for name, run in runs.items():
        assert run is None or (run().ravel() == expected).all(), f"{name} does not find the nearest"
    work = f"exact search of {n_codes:,} codes of {8 * CODE_BYTES} bits"
    bars = {"faiss": FAISS_CODES_BAR, "usearch": FAISS_CODES_BAR, "NumPy": NUMPY_BAR}
    report.race(work, lambda: nearest_codes(query, gallery, K), runs, rounds, bars=bars)


def main() -> int:
    """Measure, compare and return the exit code."""
    options = speed_parser(__doc__).parse_args()
    report = SpeedReport(__file__, options, threads=1)
    faiss.omp_set_num_threads(1)
    codes(report, 1_000_000, 7 if options.quick else 30)
    vectors_in_a_collection(report, 20_000 if options.quick else 100_000, 2_000)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
