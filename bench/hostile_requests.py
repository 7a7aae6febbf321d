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
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from bench.campaign import add_round, arguments, next_seed
from diptych import Retriever
from diptych.collection import Collection
from diptych.collection.storage.place import write_lock
from diptych.data import load_dataset
from diptych.data.datasets.scenes import write_folder
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.models import CCA

FAULT = "hostile requests"
TOKEN = "a-token-that-only-this-script-knows"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
WITH_A_REASON = {"501", "503", "507"}
MOST_BYTES, LONGEST_WAIT = 10**9, 2.0
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


class NoHttp(threading.Thread):
    """Sends what no client of the web would."""

    def __init__(self, port: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._port, self._random = port, random.Random(seed)
        self.is_ending = threading.Event()
        self.sent = 0

    def run(self) -> None:
        """Send until the end."""
        while not self.is_ending.wait(0.2):
            content = bytearray(self._random.choice(_NO_HTTP))
            content[self._random.randrange(len(content))] = self._random.randrange(256)
            try:
                with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                    connection.sendall(content)
                    connection.recv(1000)
            except OSError:
                # Most are cut off, as they should be.
                pass
            self.sent += 1


def make_collection(folder: Path) -> None:
    """Make a collection of painted scenes."""
    scenes = write_folder(folder / "scenes", 30, size=64)
    pairs = load_dataset("scenes", n_train=60, n_test=1, size=64).train
    encoders: dict[str, Any] = {"image_encoder": ColourEdgeHistograms(size=64), "text_encoder": TfidfTopics()}
    retriever = Retriever(model=CCA(n_components=8), cache=False, **encoders).fit(pairs, baseline=None)
    with Collection.create(scenes / ".diptych", retriever, root=scenes) as collection:
        collection.add(scenes)


def start_service(folder: Path, *words: str) -> tuple[subprocess.Popen[str], str]:
    """Start a service with further options, and return it with its address once it answers."""
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "diptych", "serve", str(folder / "scenes"), "--port", str(port), "--quiet"]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    with (folder / "log").open("w") as log:
        service = subprocess.Popen(
            [*command, "--token-file", str(folder / "token"), *words],
            env=environment,
            stdout=log,
            stderr=log,
            text=True,
        )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/ready", headers=HEADERS).status_code == 200:
                return service, url
        except httpx.TransportError:
            time.sleep(0.2)
    raise SystemExit(f"the service did not start: {(folder / 'log').read_text()}")


def attack(url: str, folder: Path, seconds: float, seed: int) -> None:
    """Let Schemathesis draw requests until the time is over."""
    items = httpx.get(f"{url}/v1/collections/scenes/items?limit=3", headers=HEADERS).json()["items"]
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


def most_memory(service: subprocess.Popen[str]) -> int:
    """Return the most memory, in bytes, that a process of the service ever took."""
    children = [
        pid for file in Path(f"/proc/{service.pid}/task").glob("*/children") for pid in file.read_text().split()
    ]
    peaks = [0]
    for process in (str(service.pid), *children):
        status = Path(f"/proc/{process}/status")
        if status.exists() and (peak := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
            peaks.append(1024 * int(peak[1]))
    return max(peaks)


def answers_by_status(url: str) -> Counter[str]:
    """Return how many requests the service has answered with each status."""
    counts: Counter[str] = Counter()
    for line in httpx.get(f"{url}/metrics", headers=HEADERS).text.splitlines():
        if found := _COUNTED.match(line):
            counts[found["status"]] += int(float(found["count"]))
    return counts


def measure(folder: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Attack a service for some time, and return what came of it."""
    make_collection(folder)
    state = folder / "scenes" / ".diptych" / "service"
    state.mkdir(exist_ok=True)
    # Jobs are taken and wait: dozens of trainings would say nothing about requests.
    with write_lock(state / "jobs.lock"):
        service, url = start_service(folder)
        other, noise = OtherClient(url), NoHttp(int(url.rsplit(":", 1)[1]), seed)
        for thread in (other, noise):
            thread.start()
        attack(url, folder, seconds, seed)
        for thread in (other, noise):
            thread.is_ending.set()
            thread.join(timeout=70)
        told = {"is_alive": service.poll() is None, "most_bytes": most_memory(service)}
        told |= {"answers": dict(sorted(answers_by_status(url).items())), "no_http": noise.sent}
        service.terminate()
        service.wait(timeout=30)
    return told | other.told()


def main() -> None:
    """Attack, tell and judge."""
    parser = arguments(__doc__, minutes=10.0)
    parser.add_argument("--folder", type=Path, help="keep the logs here")
    options = parser.parse_args()
    seed = next_seed(options.record, FAULT)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        told = measure(folder, 60 * options.minutes, seed)
    wrong = {status: count for status, count in told["answers"].items() if status[0] == "5"}
    findings = sum(count for status, count in wrong.items() if status not in WITH_A_REASON) + (not told["is_alive"])
    findings += (told["most_bytes"] > MOST_BYTES) + (told["longest"] > LONGEST_WAIT)
    trials = sum(told["answers"].values()) - told["searches"] + told["no_http"]
    told |= {"load": round(os.getloadavg()[0], 1)}
    add_round(options.record, FAULT, seed, trials=trials, minutes=options.minutes, findings=findings, **told)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
