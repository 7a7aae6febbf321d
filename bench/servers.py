"""Servers that campaigns start, clients that they send to them, and what a server holds in memory."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.filled_collection import phrases

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
    command = [sys.executable, "-m", "bench.load_generator", f"http://127.0.0.1:{port}", collection]
    command += [f"--clients={clients}", f"--seconds={seconds}", *(["--clicks"] if clicks else []), *further]
    environment = {**os.environ, "DIPTYCH_TOKEN": TOKEN}
    answer = subprocess.run(
        command, input=json.dumps(phrases()), capture_output=True, text=True, check=True, env=environment
    )
    report: dict[str, Any] = json.loads(answer.stdout)
    return report


class Memory(threading.Thread):
    """Notes what a process and those that it started hold in memory, many times a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._process = psutil.Process(pid)
        self._ended = threading.Event()
        self.noted: list[tuple[float, int]] = []
        self.most_of_one = 0

    def run(self) -> None:
        """Go on until told to stop."""
        while not self._ended.wait(0.1):
            sizes = [0]
            # Processes end meanwhile.
            with suppress(psutil.NoSuchProcess):
                for process in (self._process, *self._process.children(recursive=True)):
                    with suppress(psutil.NoSuchProcess):
                        sizes.append(process.memory_info().rss)
                self.noted.append((time.monotonic(), sum(sizes)))
            self.most_of_one = max(self.most_of_one, *sizes)

    def growth(self) -> tuple[float, float]:
        """Stop; return the mean of the last two thirds in MiB, and by what share of it their line rises in an hour."""
        self._ended.set()
        times, sizes = np.array(self.noted[len(self.noted) // 3 :]).T
        slope = np.polyfit(times - times[0], sizes, 1)[0]
        return float(sizes.mean() / 2**20), float(3600 * slope / sizes.mean())
