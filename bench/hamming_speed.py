"""Exact Hamming search of 1,000,000 codes of 64 bits beside other libraries, approximate search, and memory.

    python -m bench.hamming_speed [--quick] [--codes N] [--bits N] [--structures]

Needs the ``search`` extra; usearch is compared too where it is installed. Everybody gets the same codes in memory and
returns the ten nearest, in turns. ``faiss`` is ``IndexBinaryFlat`` with a heap or counters. It is credited
with the better of one thread and all in every turn, because on a busy machine threads wait for each other. ``NumPy`` is
the plain vectorised search: ``bitwise_count`` of one exclusive or, then ``argpartition``. The command exits with 1
when a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.speed_report import SpeedReport, in_turns, speed_parser
from diptych.benchmark.peak_memory import peak_resident_bytes
from diptych.codes import CodeIndex, nearest_codes, pack_signs
from diptych.codes.nearest import nearest_by_numpy

K = 10
LIBRARY_BAR = 0.8
NUMPY_BAR = 4.0
MEMORY_BAR = 100e6
MANY_CODES = 10_000_000
LATENT = 32
CLUSTERS = 1_000

Search = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def clustered_codes(n_items: int, bits: int, seed: int) -> np.ndarray:
    """Return the signs of random projections of points around 1,000 centres, as a hashing method would give them."""
    fixed = np.random.default_rng(0)
    centres = fixed.standard_normal((CLUSTERS, LATENT), dtype=np.float32)
    projection = fixed.standard_normal((LATENT, bits), dtype=np.float32)
    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, n_items, 100_000):
        members = rng.integers(0, CLUSTERS, min(100_000, n_items - start))
        points = centres[members] + 0.5 * rng.standard_normal((len(members), LATENT), dtype=np.float32)
        parts.append(pack_signs(points @ projection))
    return np.concatenate(parts)


def plain_numpy(gallery: np.ndarray) -> Search:
    """Return the search one writes first."""
    words = gallery.view(np.uint64)

    def search(queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distances, positions = [], []
        for query in queries.view(np.uint64):
            far = (
                np.bitwise_count(words ^ query).sum(axis=1)
                if words.shape[1] > 1
                else np.bitwise_count(words[:, 0] ^ query)
            )
            nearest = np.argpartition(far, K)[:K]
            nearest = nearest[np.argsort(far[nearest], kind="stable")]
            distances.append(far[nearest])
            positions.append(nearest)
        return np.array(distances), np.array(positions)

    return search


def our_search(gallery: np.ndarray) -> Search:
    """Return our exact search."""
    return lambda queries: nearest_codes(queries, gallery, K)


def our_numpy_search(gallery: np.ndarray) -> Search:
    """Return our exact search as it is where faiss is not installed."""
    return lambda queries: nearest_by_numpy(queries, gallery, K)


def libraries(gallery: np.ndarray) -> dict[str, Search]:
    """Return the exact searches of the libraries that are installed."""
    import faiss

    found: dict[str, Search] = {}
    index = faiss.IndexBinaryFlat(8 * gallery.shape[1])
    index.add(gallery)

    def by_faiss(heap: bool, threads: int) -> Search:
        def search(queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            index.use_heap = heap
            faiss.omp_set_num_threads(threads)
            return index.search(queries, K)

        return search

    for threads in sorted({1, os.cpu_count() or 1}):
        found[f"faiss heap, {threads} thread(s)"] = by_faiss(True, threads)
        found[f"faiss counters, {threads} thread(s)"] = by_faiss(False, threads)
    try:
        from usearch.index import MetricKind
        from usearch.index import search as usearch_search
    except ImportError:
        return found

    def by_usearch(queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        matches = usearch_search(gallery, queries, K, MetricKind.Hamming, exact=True)
        keys, distances = np.atleast_2d(matches.keys), np.atleast_2d(matches.distances)
        return distances, keys

    found["usearch, exact"] = by_usearch
    return found


def turns(searches: dict[str, Search], queries: np.ndarray, rounds: int) -> dict[str, np.ndarray]:
    """Return the seconds of each search in every turn."""
    runs = {name: lambda search=search: search(queries) for name, search in searches.items()}
    return {name: np.array(taken) for name, taken in in_turns(runs, rounds).items()}


def exact_search(report: SpeedReport, gallery: np.ndarray, queries: np.ndarray, rounds: int) -> None:
    """Compare the exact searches on one batch of queries."""
    searches = {"ours": our_search(gallery), "ours without faiss": our_numpy_search(gallery), **libraries(gallery)}
    searches["NumPy"] = plain_numpy(gallery)
    expected = searches["NumPy"](queries)[0]
    for name, search in searches.items():
        assert (np.asarray(search(queries)[0]) == expected).all(), f"{name} does not find the nearest"
    times = turns(searches, queries, rounds)

    def best(library: str) -> np.ndarray | None:
        found = [taken for name, taken in times.items() if name.partition(",")[0].startswith(library)]
        return np.min(found, axis=0) if found else None

    work = f"exact search of {len(gallery):,} codes of {8 * gallery.shape[1]} bits, {len(queries)} at a time"
    for peer, bar in (("faiss", LIBRARY_BAR), ("usearch", LIBRARY_BAR), ("NumPy", NUMPY_BAR)):
        report.compare(work, times["ours"], best(peer), peer=peer, bar=bar)
    report.compare(f"{work}, without faiss", times["ours without faiss"], times["NumPy"], peer="NumPy")


def approximate_search(report: SpeedReport, kind: str, gallery: np.ndarray, queries: np.ndarray, rounds: int) -> None:
    """Build inverted lists, check the recall they state with other queries, and time them."""
    index = CodeIndex(8 * gallery.shape[1])
    index.add(gallery)
    asked, others = queries[: len(queries) // 2], queries[len(queries) // 2 :]
    stated = index.speed_up(asked)
    truth = nearest_codes(others, gallery, K)[0]
    measured = float((index.search(others, K)[0] <= truth[:, -1:]).mean())
    searches: dict[str, Search] = {"lists": lambda rows: index.search(rows, K), "exact": our_search(gallery)}
    for rows in (others[:1], others[:64]):
        times = turns(searches, rows, rounds)
        work = f"approximate search of {len(gallery):,} {kind} codes, {len(rows)} at a time"
        report.compare(work, times["lists"], times["exact"], limit="exact search")
    print(f"{kind}: recall stated {stated:.4f}, measured with other queries {measured:.4f}", flush=True)


def compare_structures(kind: str, gallery: np.ndarray, queries: np.ndarray) -> None:
    """Print processor time and recall of the sub-linear structures for codes that faiss has, on one thread."""
    import faiss

    bits = 8 * gallery.shape[1]
    truth = nearest_codes(queries, gallery, K)[0]

    def report(name: str, index: Any) -> None:
        start = time.thread_time()
        distances, positions = index.search(queries, K)
        spent = 1e3 * (time.thread_time() - start) / len(queries)
        recall = ((positions >= 0) & (distances <= truth[:, -1:])).mean()
        print(f"{kind:<10} {name:<38}{spent:>8.3f} ms  recall {recall:.3f}")

    faiss.omp_set_num_threads(1)
    for hashes, length, flips in ((4, 16, (0, 1, 2)), (3, 20, (1, 2, 3))):
        tables = faiss.IndexBinaryMultiHash(bits, hashes, length)
        tables.add(gallery)
        for flip in flips:
            tables.nflip = flip
            report(f"multi-index hashing {hashes} x {length}, {flip} flips", tables)
    table = faiss.IndexBinaryHash(bits, 16)
    table.add(gallery)
    for flip in (2, 4):
        table.nflip = flip
        report(f"one hash table of 16 bits, {flip} flips", table)
    lists = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(bits), bits, 1_000)
    lists.cp.niter = 5
    lists.train(gallery[:50_000])
    lists.add(gallery)
    for probes in (8, 32, 128, 256):
        lists.nprobe = probes
        report(f"1,000 inverted lists, {probes} looked into", lists)
    faiss.omp_set_num_threads(os.cpu_count() or 1)


def measure_memory() -> None:
    """Print the growth of resident memory from before the first of ten million codes to after a search of them."""
    rng = np.random.default_rng(0)
    portion = MANY_CODES // 100
    # What libraries and threads occupy by themselves is there before.
    nearest_codes(np.zeros((8, 8), np.uint8), np.zeros((1 << 20, 8), np.uint8), K)
    before = peak_resident_bytes()
    index = CodeIndex(64, capacity=MANY_CODES)
    for _ in range(100):
        index.add(rng.integers(0, 256, (portion, 8), dtype=np.uint8))
    index.search(index.codes[:2], K)
    index.search(index.codes[:64], K)
    print(peak_resident_bytes() - before)


def main() -> int:
    """Measure, compare and return the exit code."""
    parser = speed_parser(__doc__)
    parser.add_argument("--codes", type=int, default=1_000_000)
    parser.add_argument("--bits", type=int, default=64, help="a multiple of 64")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--structures", action="store_true", help="compare the sub-linear structures of faiss as well")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        measure_memory()
        return 0
    rounds = options.rounds or (7 if options.quick else 30)
    report = SpeedReport(__file__, options)
    rng = np.random.default_rng(1)
    drawn = {
        "random": [rng.integers(0, 256, (n, options.bits // 8), dtype=np.uint8) for n in (options.codes, 1_024)],
        "clustered": [clustered_codes(options.codes, options.bits, 1), clustered_codes(1_024, options.bits, 2)],
    }
    gallery, queries = drawn["random"]
    for together in (1, 64):
        exact_search(report, gallery, queries[:together], rounds)
    for kind, (items, asked) in drawn.items():
        approximate_search(report, kind, items, asked, rounds)
        if options.structures:
            compare_structures(kind, items, asked[:200])
    command = [sys.executable, "-m", "bench.hamming_speed", "--memory"]
    grown = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    report.bound(f"memory of {MANY_CODES:,} codes of 64 bits", [grown / 1e6], MEMORY_BAR / 1e6, unit="MB")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
