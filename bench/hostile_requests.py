"""Send a service everything its description allows and much that it does not, while somebody else goes on searching.

    python -m bench.hostile_requests [--minutes 10]

A real service with a small collection gets requests that Schemathesis draws from its own description: right, at the
edges, wrong, and one after another on what the one before made. Beside it come lines that are no HTTP. A client with a
connection of its own searches four times a second. Prints a line of JSON: how many requests were answered and how, the
longest that the client waited, and the most memory that a process of the service took. Exits with 1 where an answer was
a 5xx other than 501, 503 and 507, a process took more than 1 GB, the service ended, or the client waited for longer
than two seconds.
"""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from bench.campaign import add_round, arguments, next_seed
from bench.servers import TOKEN, Memory, free_port, process
from diptych.collection.store.opening import open_store
from tests.doubles.visitors import scenes_collection, weak_retriever

FAULT = "hostile requests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
WITH_A_REASON = {"501", "503", "507"}
MAX_BYTES, MAX_WAIT_S = 10**9, 2.0
_COUNTED = re.compile(r'^diptych_requests_total\{.*route="(?P<route>[^"]*)",status="(?P<status>\d+)"\} (?P<count>\S+)')
_NO_HTTP = (
    b"\x00" * 2000,
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"POST /v1/collections/scenes/items HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/collections/scenes/search HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /v1/collections/scenes/search?q=a HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


class OtherClient(threading.Thread):
    """Searches on, and remembers how long each answer took and what was no answer."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._address = f"{url}/v1/collections/scenes/search"
        self.is_ending = threading.Event()
        self.seconds: list[float] = []
        self.refused: Counter[str] = Counter()

    def run(self) -> None:
        """Search until the end."""
        with httpx.Client(timeout=60) as client:
            while not self.is_ending.wait(0.25):
                started = time.perf_counter()
                try:
                    status = str(client.get(self._address, params={"q": "a red house"}).status_code)
                except httpx.HTTPError as error:
                    status = type(error).__name__
                self.seconds.append(time.perf_counter() - started)
                if status != "200":
                    self.refused[status] += 1

    def told(self) -> dict[str, Any]:
        """Return how many searches there were, how long they took, and what was no answer."""
        waits = sorted(self.seconds)
        seconds = {"p50": round(waits[len(waits) // 2], 3), "longest": round(waits[-1], 3)}
        return {"searches": len(waits), **seconds, "refused": dict(self.refused)}


def send_no_http(port: int, seed: int, is_ending: threading.Event) -> None:
    """Send what no client of the web would, until the end."""
    rng = random.Random(seed)
    while not is_ending.wait(0.2):
        content = bytearray(rng.choice(_NO_HTTP))
        content[rng.randrange(len(content))] = rng.randrange(256)
        # Most are cut off, as they should be.
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(content)
            connection.recv(1000)


def hold_jobs(place: Path) -> None:
    """Let a job run that never ends and needs no processor: others wait for it."""
    store = open_store(place)
    names = "name, kind, parameters, state, created, beat_ns"
    row = ("held", "index", "{}", "running", "2026-01-01T00:00:00Z", 2**62)
    store.write(lambda db: db.run(f"INSERT INTO job ({names}) VALUES (?, ?, ?, ?, ?, ?)", row))
    store.close()


@contextmanager
def searched_service(folder: Path, *options: str, has_jobs: bool = True) -> Iterator[tuple[int, int, OtherClient]]:
    """Serve a collection of painted scenes that somebody searches; give process, port and that client.

    Without jobs they are taken and wait: dozens of trainings would say nothing about requests.
    """
    scenes_collection(folder, 30, weak_retriever(size=64), size=64).close()
    port = free_port()
    if not has_jobs:
        hold_jobs(folder / "collection")
    serving = [sys.executable, "-m", "diptych", "serve", str(folder / "collection"), "--name=scenes", "--quiet"]
    command = [*serving, f"--port={port}", *options]
    with process(command, f"{port}/ready", folder) as pid:
        other = OtherClient(f"http://127.0.0.1:{port}")
        other.start()
        yield pid, port, other
        other.is_ending.set()
        other.join(timeout=70)


def attack(url: str, folder: Path, seconds: float, seed: int) -> None:
    """Let Schemathesis draw requests until the time is over."""
    items = httpx.get(f"{url}/v1/collections/scenes/items?limit=3", headers=HEADERS, timeout=60).json()["items"]
    config = folder / "schemathesis.toml"
    config.write_text(
        f'[parameters]\n"path.collection" = "scenes"\n"path.item_id" = {[item["id"] for item in items]!r}\n'
    )
    # It may go on for long after its time: what was answered counts.
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
                *("run", f"{url}/v1/openapi.json", "--header", f"Authorization: Bearer {TOKEN}", "--seed", str(seed)),
                *("--phases", "examples,coverage,fuzzing,stateful", "--mode", "all", "--max-time", str(int(seconds))),
                *("--checks", "not_a_server_error", "--continue-on-failure", "--request-timeout", "60", "--no-color"),
                *("--workers", "4", "--generation-database", "none", "--exclude-operation-id", "followJob"),
                *("--report-dir", str(folder / "reports")),
            ],
            cwd=folder,
            stdout=(folder / "schemathesis.log").open("w"),
            stderr=subprocess.STDOUT,
            timeout=seconds + 60,
            check=False,
        )


def answers_by_status(url: str) -> Counter[str]:
    """Return how many requests the service has answered with each status."""
    counts: Counter[str] = Counter()
    for line in httpx.get(f"{url}/metrics", headers=HEADERS, timeout=60).text.splitlines():
        if found := _COUNTED.match(line):
            counts[found["status"]] += int(float(found["count"]))
    return counts


def measure(folder: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Attack a service for some time, and return what came of it."""
    is_ending = threading.Event()
    with searched_service(folder, has_jobs=False) as (pid, port, other):
        url, noise = f"http://127.0.0.1:{port}", threading.Thread(target=send_no_http, args=(port, seed, is_ending))
        memory = Memory(pid)
        memory.start()
        noise.start()
        attack(url, folder, seconds, seed)
        is_ending.set()
        noise.join(timeout=70)
        answers = dict(sorted(answers_by_status(url).items()))
    return {"most_bytes": memory.most_of_one, "answers": answers, **other.told()}


def main() -> None:
    """Attack, tell and judge; a service that has ended gives no metrics, which is an error."""
    options = arguments(__doc__, minutes=10.0).parse_args()
    seed = next_seed(options.record, FAULT)
    with tempfile.TemporaryDirectory() as folder:
        told = measure(Path(folder), 60 * options.minutes, seed)
    wrong = (count for status, count in told["answers"].items() if status[0] == "5" and status not in WITH_A_REASON)
    findings = sum(wrong) + (told["most_bytes"] > MAX_BYTES) + (told["longest"] > MAX_WAIT_S)
    trials = sum(told["answers"].values()) - told["searches"]
    told |= {"load": round(os.getloadavg()[0], 1)}
    add_round(options.record, FAULT, seed, trials=trials, minutes=options.minutes, findings=findings, **told)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
