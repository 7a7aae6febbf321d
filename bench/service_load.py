"""The service under load: latency beside in-process search, 64 clients for a minute, and a bare index beside it.

    python -m bench.service_load [--items N] [--seconds S]

The collection has 100,000 items of the default retriever's space. ``diptych serve`` runs as a process of its own, the
clients in another. Measured are

(a) one client: every query over HTTP and in this process by ``Collection.search``, in turns. Bars: the median over HTTP
    under 3 times, the 99th percentile under 10 times that of the same queries in process;
(b) 64 clients that search and click for ``--seconds``. Bars: no error; as many clicks in the log as were acknowledged;
    memory flat, which means: the least-squares line through the memory of the server over the last two thirds of the
    time rises by less than 2 % of it;
(c) the same clients, without clicks, on the service and on a bare faiss index behind the same web framework.

The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.painted_collection import painted_collection, phrases
from diptych.collection import Collection
from diptych.service.clicks import ClickLog
from diptych.service.clicks.log import click_log_path

HERE = Path(__file__).parent
CLIENTS = 64
MEDIAN_BAR, TAIL_BAR, MEMORY_BAR = 3.0, 10.0, 0.02
TOKEN = "a-token-for-the-benchmark-alone"


@contextmanager
def process(command: list[str], address: str, room: Path) -> Iterator[int]:
    """Run a server until the block ends, and give its number once ``address`` answers."""
    with (room / "server.log").open("ab") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "DIPTYCH_TOKEN": TOKEN})
    try:
        wait_for(address, server, room / "server.log")
        yield server.pid
    finally:
        server.terminate()
        server.wait(timeout=60)


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Return when something answers at the address with success or refuses the method."""
    port, path = int(address.partition("/")[0]), "/" + address.partition("/")[2]
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and server.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", path)
            if connection.getresponse().status in (200, 405):
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"no answer on port {port}; the server said: {log.read_text()[-2000:]}")


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def load(
    port: int, collection: str, clients: int, seconds: float, *further: str, clicks: bool = False
) -> dict[str, Any]:
    """Let clients loose on a server, from another process."""
    command = [sys.executable, str(HERE / "load_generator.py"), f"http://127.0.0.1:{port}", collection]
    command += [f"--clients={clients}", f"--seconds={seconds}", *(["--clicks"] if clicks else []), *further]
    environment = {**os.environ, "DIPTYCH_TOKEN": TOKEN}
    answer = subprocess.run(
        command, input=json.dumps(phrases()), capture_output=True, text=True, check=True, env=environment
    )
    report: dict[str, Any] = json.loads(answer.stdout)
    return report


class Memory(threading.Thread):
    """Notes the resident memory of a process and of those that it started, every half second."""

    def __init__(self, number: int) -> None:
        super().__init__(daemon=True)
        self._number = number
        self._ended = threading.Event()
        self.noted: list[tuple[float, float]] = []

    def run(self) -> None:
        """Go on until told to stop."""
        while not self._ended.wait(0.5):
            started = Path(f"/proc/{self._number}/task/{self._number}/children").read_text().split()
            self.noted.append((time.monotonic(), sum(map(self._resident, (self._number, *started)))))

    @staticmethod
    def _resident(number: int | str) -> float:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

    def growth(self) -> tuple[float, float]:
        """Stop; return the mean of the last two thirds in MiB, and the share of it by which their line rises."""
        self._ended.set()
        times, sizes = np.array(self.noted[len(self.noted) // 3 :]).T
        slope = np.polyfit(times - times[0], sizes, 1)[0]
        return float(sizes.mean()), float(slope * (times[-1] - times[0]) / sizes.mean())


def one_client(collection: Collection, port: int, queries: list[str]) -> tuple[list[float], list[float], int]:
    """Ask every query in process and over HTTP, in turns; return the times and the size of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json"}
    sizes: list[int] = []

    def inside(query: str) -> None:
        collection.search(query, 30)

    def outside(query: str) -> None:
        connection.request("POST", "/v1/collections/load/search", json.dumps({"query": query, "limit": 30}), headers)
        answer = connection.getresponse()
        sizes.append(len(answer.read()))
        if answer.status != 200:
            raise SystemExit(f"the search {query!r} was answered with {answer.status}")

    for query in queries[:20]:
        inside(query)
        outside(query)
    times: dict[Any, list[float]] = {inside: [], outside: []}
    for turn, query in enumerate(queries):
        for ask in (inside, outside) if turn % 2 else (outside, inside):
            started = time.perf_counter()
            ask(query)
            times[ask].append(time.perf_counter() - started)
    return times[inside], times[outside], int(np.mean(sizes))


def row(name: str, seconds: list[float], elapsed: float | None = None) -> None:
    """Print a line of the table."""
    median, tail = np.percentile(seconds, [50, 99]) * 1e3
    rate = len(seconds) / (elapsed or sum(seconds))
    print(f"{name:<44}{rate:>10,.0f}{median:>10.1f}{tail:>10.1f}", flush=True)


def main() -> int:
    """Measure, print a table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--queries", type=int, default=500)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"{options.items:,} items, {cores} cores for server and clients together, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        started = time.perf_counter()
        folder = painted_collection(room / "load", options.items)
        print(f"collection made in {time.perf_counter() - started:.0f} s", flush=True)
        port = free_port()
        serving = [sys.executable, "-m", "diptych", "serve", str(folder), "--name=load", f"--port={port}"]
        with process([*serving, "--rate-limit=0", "--quiet"], f"{port}/ready", room) as number:
            with Collection.open(folder) as collection:
                inside, outside, size = one_client(collection, port, phrases()[: options.queries])
            memory = Memory(number)
            memory.start()
            crowd = load(port, "load", CLIENTS, options.seconds, clicks=True)
            resident, growth = memory.growth()
            searching = load(port, "load", CLIENTS, options.seconds / 3)
        with ClickLog(click_log_path(folder)) as log:
            logged = log.counts().clicks
        port = free_port()
        # An answer of the bare index is as large as one of the service.
        padding = max(0, size // 30 - 60)
        bare = [sys.executable, str(HERE / "bare_index_app.py"), str(folder), str(padding), str(port)]
        with process(bare, f"{port}/v1/collections/bare/search", room):
            load(port, "bare", 1, 2)
            alone = load(port, "bare", 1, options.seconds / 6)
            bare_crowd = load(port, "bare", CLIENTS, options.seconds / 3)

    print(f"{'':<44}{'a second':>10}{'p50, ms':>10}{'p99, ms':>10}")
    row("in process, Collection.search", inside)
    row("service, 1 client", outside)
    row("bare index over HTTP, 1 client", alone["search_seconds"], alone["seconds"])
    row(f"service, {CLIENTS} clients, with clicks: searches", crowd["search_seconds"], crowd["seconds"])
    row(f"service, {CLIENTS} clients, with clicks: clicks", crowd["click_seconds"], crowd["seconds"])
    row(f"service, {CLIENTS} clients, searches alone", searching["search_seconds"], searching["seconds"])
    row(f"bare index over HTTP, {CLIENTS} clients", bare_crowd["search_seconds"], bare_crowd["seconds"])

    median, tail = (np.percentile(outside, q) / np.percentile(inside, q) for q in (50, 99))
    errors = crowd["errors"] + searching["errors"] + bare_crowd["errors"]
    acknowledged = len(crowd["click_seconds"])
    print(f"one client: p50 {median:.2f} times (bar {MEDIAN_BAR}), p99 {tail:.2f} times (bar {TAIL_BAR}) in process")
    print(f"an answer has {size:,} bytes; the clients kept {crowd['busy']:.0%} of one core busy")
    print(f"{len(errors)} errors{': ' + errors[0] if errors else ''}")
    print(f"{acknowledged:,} clicks acknowledged, {logged:,} in the log")
    print(
        f"memory of the server {resident:.0f} MiB, change in the last two thirds {growth:+.2%} (bar {MEMORY_BAR:.0%})"
    )
    bars = {
        "median": median < MEDIAN_BAR,
        "tail": tail < TAIL_BAR,
        "errors": not errors,
        "clicks": logged == acknowledged > 0,
        "memory": growth < MEMORY_BAR,
    }
    missed = [name for name, met in bars.items() if not met]
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
