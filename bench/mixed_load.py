"""A crowd on the service: searches, clicks, writes and uploads at once, and what becomes of latency and memory.

    python -m bench.mixed_load [--fault postgres] [--minutes M] [--clients N] [--items N] [--workers N]

``make campaigns`` runs it. ``diptych serve`` runs as a process of its own, the clients in another. It has ``--items``
items of the default retriever's space, in a folder or on a PostgreSQL server that is started for it. A tenth of what
the clients do are writes: each adds texts, changes and removes them, so that the collection stays as large as it is;
some search with pictures that they send, and every search is followed by a click. Bars: no write is refused or fails;
nothing that was acknowledged is lost, and nothing that was removed is there; the 99th percentile of searches is at most
3 times their median; and, for runs of ten minutes and more, a line fitted to the memory over the last two thirds rises
by at most 1 % an hour. The command exits with 1 when a bar is missed. Runs are added to the record of
``bench/campaign.py``, with the load of the machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from bench.campaign import add_round, arguments, next_seed
from bench.filled_collection import painted_collection
from bench.servers import Memory, free_port, load, process
from diptych.collection import Collection
from diptych.service.clicks import ClickLog
from tests.doubles.postgres_server import PostgresServer

WRITES, UPLOADS = 0.10, 0.02
TAIL_BAR, MEMORY_BAR, JUDGED_MINUTES = 3.0, 0.01, 10.0
WRITING = ("add", "change", "remove")
KINDS = ("search", "click", "upload", *WRITING)
FAULTS = {None: "a crowd", "postgres": "a crowd, PostgreSQL"}


def table(turns: list[Any], seconds: float) -> dict[str, Any]:
    """Print how long each kind of request took, and return the latencies by kind."""
    latencies = {kind: np.array([took for name, _, took, _ in turns if name == kind]) * 1e3 for kind in KINDS}
    print(f"{'':<10}{'requests':>10}{'a second':>10}{'p50, ms':>10}{'p90':>10}{'p99':>10}{'most':>10}")
    for kind, times in latencies.items():
        if len(times):
            values = (len(times) / seconds, *np.percentile(times, [50, 90, 99, 100]))
            print(f"{kind:<10}{len(times):>10,}{''.join(f'{value:>10.1f}' for value in values)}")
    return latencies


def lost(place: str, report: dict[str, Any]) -> list[str]:
    """Return what the service acknowledged and the collection does not show."""
    with Collection.open(place) as collection:
        there = {item.id: list(item.labels) for item in collection}
    wrong = [f"{item} is not as it was left" for item, labels in report["own"].items() if there.get(item) != labels]
    return wrong + [f"{item} is there again" for item in report["removed"] if item in there]


def main() -> int:
    """Measure, print, draw and return the exit code."""
    parser = arguments(__doc__, minutes=10.0)
    parser.add_argument("--fault", choices=[fault for fault in FAULTS if fault], help="where the collection is")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    cores, busy = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"{options.items:,} items, {options.clients} clients, {cores} cores, load {busy:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        room = Path(scratch)
        address = None
        if options.fault == "postgres":
            address = stack.enter_context(closing(PostgresServer())).address("load")
        place = painted_collection(room / "load", options.items, address)
        port = free_port()
        serving = [sys.executable, "-m", "diptych", "serve", place, "--name=load", f"--port={port}"]
        serving += [f"--workers={options.workers}", "--rate-limit=0", "--quiet"]
        with process(serving, f"{port}/ready", room) as number:
            # Whatever is loaded with the first requests is loaded.
            load(port, "load", options.clients, 5, f"--writes={WRITES}", f"--uploads={UPLOADS}", clicks=True)
            memory = Memory(number)
            memory.start()
            shares = (f"--writes={WRITES}", f"--uploads={UPLOADS}")
            report = load(port, "load", options.clients, 60 * options.minutes, *shares, clicks=True)
            resident, an_hour = memory.growth()
        print((room / "server.log").read_text()[-2000:], end="")
        missing = lost(place, report)
        with Collection.open(place) as collection, ClickLog(collection.store) as log:
            logged = log.counts().clicks
    latencies = table(report["turns"], report["seconds"])
    statuses = Counter((kind, status) for kind, _, _, status in report["turns"] if status not in (200, 201, 204))
    clicks = sum(kind == "click" and status == 201 for kind, _, _, status in report["turns"])
    median, tail = np.percentile(latencies["search"], [50, 99])
    print(f"refused or failed: {dict(statuses) or 'nothing'}{'; ' + report['errors'][0] if report['errors'] else ''}")
    print(f"lost: {len(missing)} of {len(report['own']):,} items{'; ' + missing[0] if missing else ''}")
    print(f"clicks: {clicks:,} acknowledged, {logged:,} in the log with those before")
    print(f"searches: p99 is {tail / median:.2f} times p50 (bar {TAIL_BAR:g})")
    print(
        f"memory {resident:.0f} MiB, {an_hour:+.1%} an hour (bar {MEMORY_BAR:.0%}, judged from {JUDGED_MINUTES:g} min)"
    )
    bars = {
        "writes": not report["errors"],
        "nothing lost": not missing and logged >= clicks > 0,
        "tail": tail <= TAIL_BAR * median,
        "memory": options.minutes < JUDGED_MINUTES or an_hour <= MEMORY_BAR,
    }
    missed = [name for name, met in bars.items() if not met]
    found = {"clients": options.clients, "minutes": options.minutes, "requests": len(report["turns"])}
    found |= {"writes": sum(len(latencies[kind]) for kind in WRITING), "refused": statuses.total()}
    found |= {"lost": len(missing), "p50_ms": round(median, 1), "p99_ms": round(tail, 1)}
    found |= {"memory_mib": round(resident), "memory_an_hour": round(an_hour, 4), "missed": missed}
    found |= {"cores": cores, "load_before": round(busy, 1), "load": round(os.getloadavg()[0], 1)}
    fault = FAULTS[options.fault]
    add_round(options.record, fault, next_seed(options.record, fault), **found)
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
