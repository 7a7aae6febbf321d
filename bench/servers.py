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


def descendants(pid: int | str) -> Iterator[str]:
    """Yield the numbers of the processes that a process has started, and that these have."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        # Threads and processes end meanwhile.
        with suppress(OSError):
            for child in file.read_text().split():
                yield child
                yield from descendants(child)


def peak_memory(pid: int | str) -> int:
    """Return the most memory, in bytes, that a process ever took; 0 where it has ended."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return 0


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
