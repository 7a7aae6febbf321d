"""What a process of the service takes besides the collection: its networks, a request, an answer.

    python benchmarks/service_costs.py [--queries N]

These are the numbers that ``diptych plan`` adds for the shipped retriever, and that ``planning.py`` cannot measure with
its stand-in points: private memory of ``diptych serve`` after searches by words and by pictures, several at once,
beyond that of a process that only searches stand-in points; processor time of a request with words that were not asked
before; and of the answer alone, by ``Collection.search`` with words that were. The collections have a thousand items,
whose comparison takes next to nothing. Processes have one thread. Bars as there: memory within a factor of 1.3 of what
is predicted, times within 2. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
from PIL import Image

from diptych.collection import Collection, RetrieverCosts, plan_collection
from filled_collection import PointRetriever, fill, opened, private_megabytes
from painted_collection import painted_collection, phrases
from planning import ROOM_BAR, SINGLE_THREAD, TIME_BAR
from service_load import free_port, load, process

ITEMS = 1000
CLIENTS, SECONDS = 8, 5.0


def stand_in(folder: Path) -> dict[str, float]:
    """Return the megabytes of a process that searches a collection without networks and service."""
    fill(folder, ITEMS, PointRetriever())
    return json.loads(_python("--memory", str(folder)))


def memory_of_searches(folder: Path) -> dict[str, float]:
    """Search, and return the private memory of this process."""
    with opened(folder) as collection:
        for turn in range(30):
            collection.search(f"query {turn}")
        return {"megabytes": private_megabytes() * 2**20 / 1e6}


def answers(folder: Path, queries: list[str]) -> float:
    """Return the seconds of a core for an answer to words that are known."""
    with Collection.open(folder) as collection:
        for query in queries:
            collection.search(query, 30)
        started = time.process_time()
        for query in queries:
            collection.search(query, 30)
        return (time.process_time() - started) / len(queries)


def requests(folder: Path, queries: list[str], room: Path) -> tuple[float, float]:
    """Return the seconds of a core for a request with new words, and the megabytes of the service after a picture."""
    port = free_port()
    serving = [sys.executable, "-m", "diptych", "serve", str(folder), "--name=load", f"--port={port}"]
    with process([*serving, "--rate-limit=0", "--quiet"], f"{port}/ready", room) as number:
        server, connection = psutil.Process(number), http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def ask(kind: str, path: str, body: bytes, connection: http.client.HTTPConnection = connection) -> None:
            connection.request("POST", f"/v1/collections/load/{path}", body, {"Content-Type": kind})
            answer = connection.getresponse()
            if answer.read() and answer.status != 200:
                raise SystemExit(f"a search by {path} was answered with {answer.status}")

        bodies = [json.dumps({"query": query, "limit": 30}).encode() for query in queries]
        for body in bodies[:20]:
            ask("application/json", "search", body)
        before = _seconds(server)
        for body in bodies[20:]:
            ask("application/json", "search", body)
        taken = (_seconds(server) - before) / len(bodies[20:])
        # Networks of pictures are read when the first one is asked with, and several requests at once take more.
        form = b'--b\r\nContent-Disposition: form-data; name="picture"; filename="p.jpg"\r\n\r\n%b\r\n--b--\r\n'
        with ThreadPoolExecutor(CLIENTS) as clients:
            for _ in range(CLIENTS):
                line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                clients.submit(ask, "multipart/form-data; boundary=b", "search/picture", form % _photograph(), line)
        load(port, "load", CLIENTS, SECONDS)
        rollup = Path(f"/proc/{number}/smaps_rollup").read_text()
    return taken, sum(int(kilobytes) for kilobytes in re.findall(r"Anonymous: +(\d+)", rollup)) * 1024 / 1e6


def _photograph() -> bytes:
    shades = np.add.outer(np.arange(500), np.arange(375))[..., None] * np.array([1, 2, 3]) % 256
    written = io.BytesIO()
    Image.fromarray(shades.astype(np.uint8)).save(written, "jpeg")
    return written.getvalue()


def _seconds(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def _python(*words: str) -> str:
    command = [sys.executable, __file__, *words]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **SINGLE_THREAD})
    return run.stdout


def main() -> int:
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--memory", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--answers", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    queries = phrases()[: options.queries]
    if options.memory is not None:
        print(json.dumps(memory_of_searches(options.memory)))
        return 0
    if options.answers is not None:
        print(json.dumps(answers(options.answers, queries)))
        return 0
    os.environ.update(SINGLE_THREAD)
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        alone = stand_in(room / "stand-in")["megabytes"]
        folder = painted_collection(room / "load", ITEMS)
        answer = json.loads(_python("--answers", str(folder), f"--queries={options.queries}"))
        request, megabytes = requests(folder, queries, room)
    costs = RetrieverCosts()
    search = plan_collection(ITEMS, 1.0).search_core_seconds - costs.request_seconds
    rows = [
        ("networks and service, MB", costs.networks / 1e6, megabytes - alone, ROOM_BAR),
        ("a request and its words, ms of a core", 1e3 * costs.request_seconds, 1e3 * (request - answer), TIME_BAR),
        ("an answer, ms of a core", 1e3 * search, 1e3 * answer, TIME_BAR),
    ]
    is_met = True
    print(f"{'':40s}{'predicted':>12s}{'measured':>12s}")
    for name, predicted, measured, bar in rows:
        ratio = predicted / measured
        met = 1 / bar <= ratio <= bar
        is_met &= met
        print(f"{name:40s}{predicted:12.1f}{measured:12.1f}{ratio:8.2f}  bar {bar}: {'met' if met else 'MISSED'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
