"""A collection of a million items on one machine: start, memory, searches, filters, facets, additions.

    python -m bench.million_items [--quick] [--items N] [--folder /var/tmp/million]

Each item has a point of 256 numbers, a caption and three fields. The collection is filled through its store, because
encoding a million pictures is another matter, and opened by fresh processes, as a service's workers would. The plain
search stands beside the bare index in the same process. Bars: 1.5 s to the first answer, a plain search 1.5 times the
bare index at a recall of 0.95, 100 ms for a new filter, 300 ms for facets, and 300 MB of memory of a process's own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from diptych.collection.search.gallery import PointBlock

from bench.filled_collection import PointRetriever, fill, opened, private_megabytes, timed
from bench.report import SpeedReport, speed_parser
from diptych.collection import Record

RECALL_BAR = 0.95
OPEN_SECONDS_BAR = 1.5
BARE_BAR = 1 / 1.5
FILTER_SECONDS_BAR = 0.1
FACETS_SECONDS_BAR = 0.3
MEGABYTES_BAR = 300
TURNS = 40
ADDITIONS = 12


def median_seconds(*works: Callable[[int], Any], times: int = TURNS) -> list[float]:
    """Return the medians of works that take turns: each finds the machine as the other leaves it."""
    taken = [[timed(lambda turn=turn, work=work: work(turn)) for work in works] for turn in range(times)]
    return [statistics.median(each) for each in zip(*taken, strict=True)]


def ask(folder: Path) -> dict[str, float]:
    """Open the collection as a worker of the service does, ask it everything, and return what it took."""
    started = time.perf_counter()
    collection = opened(folder)
    collection.search("first", k=10)
    found = {"open": time.perf_counter() - started}
    queries = [f"query {number}" for number in range(TURNS)]
    points = collection.retriever.encode_texts(queries)
    for text in queries:
        collection.search(text, hybrid=False)
        collection.search(text)
    block = max(collection._state.snapshot().galleries["image"].blocks, key=len)
    found["plain"], found["bare"] = median_seconds(
        lambda turn: collection.search(queries[turn], hybrid=False),
        # Another query: what the last one has brought into the processor's cache would help.
        lambda turn: bare_search(block, points[[(turn + 20) % TURNS]]),
    )
    near, truth = (collection.nearest(points, 10, exact=exact)[0] for exact in (False, True))
    found["recall"] = float(np.mean([len({*a} & {*b}) / 10 for a, b in zip(near, truth, strict=True)]))
    # Short queries may be names, and are looked for among words besides.
    (found["short"],) = median_seconds(lambda turn: collection.search(queries[turn]))
    words = [f"word{2 * number + 5} word{number + 300}" for number in range(TURNS)]
    (found["hybrid"],) = median_seconds(lambda turn: collection.search(words[turn], hybrid=True))
    (found["filter"],) = median_seconds(
        lambda turn: collection.search("x", filter=f'year>={1960 + turn} and camera:"camera {turn % 20}"')
    )
    found["facets"] = timed(collection.facets)
    found["memory"] = private_megabytes()
    return found


def bare_search(block: PointBlock, query: np.ndarray) -> np.ndarray:
    """Return the ten nearest rows by the index alone; what rounded lists find is scored again, for the same recall."""
    index = block.index
    if index is None:
        return np.argsort(block.vectors @ -query[0])[:10]
    _, rows = index.engine.search(query, index.wanted(10))
    return rows[:, np.argsort(block.vectors[rows[0]] @ -query[0])[:10]] if index.is_coarse else rows


def change(folder: Path) -> dict[str, float]:
    """Add one item at a time, and look at once for it by points, by a filter and by words."""
    with opened(folder) as collection:
        collection.search("first")
        collection.search("first", hybrid=True)
        added, found = [], []
        for turn in range(ADDITIONS):
            name = f"zebra{turn}{time.time_ns()}"
            record = Record(captions=[name], id=name, metadata={"year": 3000 + turn, "code": name})
            added.append(timed(lambda record=record: collection.add([record])))
            started = time.perf_counter()
            for options in ({}, {"filter": f"code={name}"}, {"hybrid": 1.0}):
                assert collection.search(name, k=1, target="texts", **options)[0].id == name, options
            found.append(time.perf_counter() - started)
    return {"added": statistics.median(added), "found": statistics.median(found)}


def in_a_process(step: str, folder: Path) -> dict[str, float]:
    """Run a step in a process of its own."""
    command = [sys.executable, "-m", "bench.million_items", "--step", step, "--folder", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(report: SpeedReport, folder: Path, items: int) -> None:
    """Ask, change, and report."""
    found = in_a_process("ask", folder) | in_a_process("change", folder)
    report.hold("recall@10", found["recall"] >= RECALL_BAR, f"{found['recall']:.3f}")
    report.bound(f"opening {items:,} items, to the first answer", [found["open"]], OPEN_SECONDS_BAR)
    bare = {"limit": "the bare index", "bar": BARE_BAR}
    report.compare(f"search of {items:,} items", [found["plain"]], [found["bare"]], **bare)
    report.cost(f"search of {items:,} items by points and words", [found["hybrid"]])
    report.bound(f"a new filter on {items:,} items, and search", [found["filter"]], FILTER_SECONDS_BAR)
    report.cost(f"one more item to {items:,}, durable", [found["added"]])
    report.bound(f"memory of a process with {items:,} items", [found["memory"]], MEGABYTES_BAR, unit="MB")
    report.hold("facets", found["facets"] <= FACETS_SECONDS_BAR, f"{found['facets']:.3f} s")
    print(f"a short text {1e3 * found['short']:.0f} ms; an addition found in three ways {1e3 * found['found']:.0f} ms")


def main() -> int:
    """Fill where nothing is there yet, and measure."""
    parser = speed_parser(__doc__)
    parser.add_argument("--items", type=int)
    parser.add_argument("--folder", type=Path, help="where the collection is kept and found again")
    parser.add_argument("--step", choices=("ask", "change"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        print(json.dumps(ask(options.folder) if options.step == "ask" else change(options.folder)))
        return 0
    report, items = SpeedReport(__file__, options), options.items or (20_000 if options.quick else 1_000_000)
    with tempfile.TemporaryDirectory() as scratch:
        collection = (options.folder or Path(scratch)) / f"collection-{items}"
        if not (collection / "collection.json").exists():
            retriever = PointRetriever()
            fill(collection, items, retriever, retriever.points)
            with opened(collection) as filled:
                filled.search("1", exact=True)
                filled.build_index()
        measure(report, collection, items)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
