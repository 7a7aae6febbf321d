"""Index photographs on a Dask cluster: how much faster two workers are than one, and that the result is the same.

    python -m bench.dask_indexing [--limit N] [--rounds N]

The photos and captions are Flickr8k's, the retriever is the default one, features are kept nowhere but in the
collection. Scheduler and workers are processes of their own, started by Dask's programs; a worker has one thread. Each
has encoded a few photos before the clock starts. Bars: two workers take at most 1/1.7 of the time of one, where two
cores are free (the load before each run is printed); the processor time of the driver and the scheduler together stays
below a tenth of the workers'; items, their order, captions, thumbnails, features and points are those of a run without
a cluster, to the last bit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from distributed import Client

from diptych import Retriever
from diptych.collection import Collection, Record
from diptych.data import find_dataset, read_captions

SPEED_BAR, DRIVER_BAR = 1.7, 0.1
WARM_UP = 32


@dataclass(frozen=True)
class Cluster:
    """Processes of Dask."""

    address: str
    scheduler: psutil.Process
    nannies: Sequence[psutil.Process]

    def worker_seconds(self) -> float:
        """Return the processor time of the workers, which run under nannies."""
        return sum(seconds(child) for nanny in self.nannies for child in nanny.children(recursive=True))


def seconds(process: psutil.Process) -> float:
    """Return the processor time of a process."""
    used = process.cpu_times()
    return float(used.user + used.system)


@contextmanager
def cluster(n_workers: int, room: Path) -> Iterator[Cluster]:
    """Start a scheduler and workers with a thread each."""
    file = Path(tempfile.mkdtemp(dir=room)) / "scheduler.json"
    options = ["--scheduler-file", str(file), "--no-dashboard"]
    python = [sys.executable, "-m"]
    programs = [
        [*python, "distributed.cli.dask_scheduler", "--port", "0", *options],
        *[[*python, "distributed.cli.dask_worker", "--nthreads", "1", *options]] * n_workers,
    ]
    started = [subprocess.Popen(program, stderr=subprocess.DEVNULL, cwd=room) for program in programs]
    try:
        while not file.exists() or not file.read_text():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(n_workers)
        scheduler, *nannies = (psutil.Process(process.pid) for process in started)
        yield Cluster(address, scheduler, nannies)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


def contents(collection: Collection) -> list[Any]:
    """Return all that is stored, in its order, ids and times aside."""
    said = ("path", "content_hash", "size", "mtime_ns", "width", "height", "captions")
    items = list(collection)
    rows = [kind(side)[1].tobytes() for side in ("image", "text") for kind in (collection.points, collection.features)]
    return [
        [tuple(getattr(item, name) for name in said) for item in items],
        collection.thumbnails(item.id for item in items),
        rows,
    ]


def indexed(records: Sequence[Record], retriever: Retriever, folder: Path, address: str | None) -> tuple[float, Any]:
    """Index photos into a new collection; return the seconds it took and what is stored."""
    with Collection.create(folder, retriever, scheduler=address) as collection:
        report = collection.add(records)
        return report.seconds, contents(collection)


def timed(n_workers: int, records: Sequence[Record], retriever: Retriever, room: Path) -> tuple[float, float, Any]:
    """Index on a cluster; return the seconds, the share of the driver and the scheduler, and what is stored."""
    with cluster(n_workers, room) as running, tempfile.TemporaryDirectory(dir=room) as scratch:
        indexed(records[: WARM_UP * 2 * n_workers], retriever, Path(scratch) / "warm-up", running.address)
        here = psutil.Process()
        before = running.worker_seconds(), seconds(here) + seconds(running.scheduler)
        load = os.getloadavg()[0]
        taken, stored = indexed(records, retriever, Path(scratch) / "collection", running.address)
        worked = running.worker_seconds() - before[0]
        driven = seconds(here) + seconds(running.scheduler) - before[1]
    pace = f"{len(records)} photos in {taken:.1f} s, {len(records) / taken:.1f} a second; load before {load:.1f}"
    used = f"processor time: workers {worked:.1f} s, driver and scheduler {driven:.1f} s"
    print(f"{n_workers} worker{'s' * (n_workers > 1)}: {pace}; {used}", flush=True)
    return taken, driven / worked, stored


def main() -> int:
    """Compare one worker, two workers, and none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=1000, help="how many photos")
    parser.add_argument("--rounds", type=int, default=2, help="how often to measure; the fastest run of each counts")
    options = parser.parse_args()
    folder = find_dataset("flickr8k").folder()
    captions = read_captions(folder / "Flickr8k.token.txt", folder / "images")
    records = [Record(path, captions[path].captions) for path in sorted(captions)[: options.limit]]
    retriever = Retriever.default()
    retriever.cache = False
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        taken, alone = indexed(records, retriever, room / "alone", None)
        print(f"without a cluster: {len(records)} photos in {taken:.1f} s", flush=True)
        runs = [[timed(n, records, retriever, room) for n in (1, 2)] for _ in range(options.rounds)]
    one, two = (min(run[n][0] for run in runs) for n in (0, 1))
    driver = max(share for run in runs for _, share, _ in run)
    same = all(stored == alone for run in runs for _, _, stored in run)
    print(f"two workers are {one / two:.2f} times as fast as one (bar {SPEED_BAR})")
    print(f"driver and scheduler take {driver:.1%} of the workers' processor time (bar {DRIVER_BAR:.0%})")
    print(f"results {'are identical' if same else 'DIFFER'}")
    return 0 if one / two >= SPEED_BAR and driver <= DRIVER_BAR and same else 1


if __name__ == "__main__":
    sys.exit(main())
