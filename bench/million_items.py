"""A collection of a million items on one machine: start, memory, searches, filters, facets, additions, pages.

    python -m bench.million_items [--quick] [--items N] [--folder /var/tmp/million] [--place postgresql://…]

Each item has a point of 256 numbers, a caption with another, a label and three fields. The collection is loaded with
points, because encoding a million pictures is another matter, and opened by fresh processes, as a service's workers
would. Bars: 1.0 s to the first answer, 10 ms for a plain search at a recall of 0.95, 120 ms for a new filter, 50 ms for
facets, 80 ms for words with points, 15 ms for an addition that all of them see, 15,000 items a second in bulk, 120 s
for the index, and 300 MB of memory of a process's own; 50 ms for a page of a listing and 0.5 s for an album of 10,000.
In PostgreSQL 30 ms for a plain search, 60 ms for a filter, and 30 ms for an addition.
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

from bench.filled_collection import PointRetriever, fill, opened, private_megabytes, timed
from bench.report import SpeedReport, speed_parser
from diptych.collection import Record
from diptych.collection.store.opening import is_collection

RECALL_BAR = 0.95
BARS = {
    "open": ("opening {items} items, to the first answer", 1.0),
    "plain": ("search of {items} items", 0.010),
    "filter": ("a new filter on {items} items, and search", 0.120),
    "facets": ("facets of {items} items under a filter", 0.050),
    "hybrid": ("search of {items} items by points and words", 0.080),
    "addition": ("one more item to {items}, seen by all searches", 0.015),
    "page": ("a page deep in a listing of {items} items", 0.050),
    "album": ("an album of 10,000 of {items} items", 0.5),
}
# What a server changes most.
POSTGRES_BARS = {"plain": 0.030, "filter": 0.060, "hybrid": 0.080, "addition": 0.030}
RATE_BAR = 15_000
INDEX_BAR = 120.0
MEGABYTES_BAR = 300
TURNS = 40
ADDITIONS = 12
PAGES = 30


def median_seconds(work: Callable[[int], Any], times: int = TURNS) -> float:
    """Return the median of some turns."""
    return statistics.median(timed(lambda turn=turn: work(turn)) for turn in range(times))


def ask(place: str) -> dict[str, float]:
    """Open the collection as a worker of the service does, ask it everything, and return what it took."""
    started = time.perf_counter()
    collection = opened(place)
    collection.search("first", k=10)
    found = {"open": time.perf_counter() - started}
    queries = [f"query {number}" for number in range(TURNS)]
    points = collection.retriever.encode_texts(queries)
    for text in queries:
        collection.search(text, hybrid=False)
    found["plain"] = median_seconds(lambda turn: collection.search(queries[turn], hybrid=False))
    near, truth = (collection.nearest(points, 10, exact=exact)[0] for exact in (False, True))
    found["recall"] = float(np.mean([len({*a} & {*b}) / 10 for a, b in zip(near, truth, strict=True)]))
    words = [f"word{2 * number + 5} word{number + 300}" for number in range(TURNS)]
    found["hybrid"] = median_seconds(lambda turn: collection.search(words[turn], hybrid=True))
    filters = [f'year>={1960 + turn} and camera:"camera {turn % 20}"' for turn in range(TURNS)]
    found["filter"] = median_seconds(lambda turn: collection.search("x", filter=filters[turn]))
    collection.facets()
    found["facets"] = median_seconds(lambda turn: collection.facets(f"year>={1950 + turn}"))
    found["memory"] = private_megabytes()
    cursor = None
    for _ in range(PAGES):
        cursor = collection.page(cursor=cursor, sort="name", limit=100).next
    found["page"] = median_seconds(lambda _: collection.page(cursor=cursor, sort="name", limit=100))
    if "Ten thousand" not in collection.albums:
        many = collection.items("year=1960")[:10_000]
        collection.albums.add("Ten thousand", [item.id for item in many])
    found["album"] = timed(lambda: collection.albums.items("Ten thousand"))
    return found


def change(place: str) -> dict[str, float]:
    """Add one item at a time, and look at once for it by points, by a filter and by words.

    What the same searches take when they are asked again is taken off: it is not the addition's.
    """
    with opened(place) as collection:
        collection.search("first", target="texts")
        collection.search("first", hybrid=True)
        collection.facets()
        taken = []
        for turn in range(ADDITIONS):
            name = f"zebra{turn}{time.time_ns()}"
            record = Record(captions=[name], id=name, metadata={"year": 3000 + turn, "code": name})

            def look(name: str = name) -> None:
                for options in ({}, {"filter": f"code={name}"}, {"hybrid": 1.0}):
                    assert collection.search(name, k=1, target="texts", **options)[0].id == name, options

            added = timed(lambda record=record: collection.add([record]))
            taken.append(added + timed(look) - timed(look))
    return {"addition": statistics.median(taken)}


def in_a_process(step: str, place: str) -> dict[str, float]:
    """Run a step in a process of its own."""
    command = [sys.executable, "-m", "bench.million_items", "--step", step, "--place", place]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Fill where nothing is there yet, and measure."""
    parser = speed_parser(__doc__)
    parser.add_argument("--items", type=int)
    parser.add_argument("--folder", type=Path, help="where the collection is kept and found again")
    parser.add_argument("--place", help="the address of a PostgreSQL schema instead")
    parser.add_argument("--step", choices=("ask", "change"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        print(json.dumps((ask if options.step == "ask" else change)(options.place)))
        return 0
    report, items = SpeedReport(__file__, options), options.items or (20_000 if options.quick else 1_000_000)
    with tempfile.TemporaryDirectory() as scratch:
        base = options.folder or Path(scratch)
        place = options.place or str(base / f"collection-{items}")
        engine = ", PostgreSQL" if options.place else ""
        if not is_collection(place):
            retriever = PointRetriever()
            seconds = fill(place, items, retriever, retriever.points, root=base)
            report.bound(f"loading {items:,} items with points{engine}", [items / seconds], RATE_BAR, unit="items/s")
            seconds = timed(lambda: _build(place))
            if not engine:
                report.bound(f"the index of {items:,} items", [seconds], INDEX_BAR)
        found = in_a_process("ask", place) | in_a_process("change", place)
    report.hold("recall@10", found["recall"] >= RECALL_BAR, f"{found['recall']:.3f}")
    for name, (work, bar) in BARS.items():
        if engine and name not in POSTGRES_BARS:
            continue
        bar = POSTGRES_BARS.get(name, bar) if engine else bar
        report.bound(work.format(items=f"{items:,}") + engine, [found[name]], bar)
    if not engine:
        report.bound(f"memory of a process with {items:,} items", [found["memory"]], MEGABYTES_BAR, unit="MB")
    return report.finish()


def _build(place: str) -> None:
    with opened(place) as collection:
        collection.build_index()


if __name__ == "__main__":
    sys.exit(main())
