"""How long the program takes to start: a help, a search, and a worker of the service.

    python -m bench.start [--repeats N]

Processor time, its own and that of the system, the median of some runs after one that prepares. The search is asked of
the 42 photographs that come with Diptych. A worker of the service is measured from its start until ``/ready`` answers,
when its networks are loaded and a search was answered; its memory is what belongs to one process alone, of two workers.
Bars: the help takes at most 5 times as long as ``import typer``, and the worker has 200 MB.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

import diptych
from bench.campaign import processor_seconds_of
from bench.report import PROCESSOR_SECONDS, SpeedReport, speed_parser
from bench.servers import free_port, process

TYPER_BAR = 5.0
IDLE_MEGABYTES_BAR = 200.0
SETTLE_SECONDS = 2.0
PHOTOGRAPHS = Path(diptych.__file__).parent / "data" / "photographs"


def program_seconds(words: tuple[str, ...], repeats: int, folder: Path) -> list[float]:
    """Return the processor times of a program, after a run that prepares."""
    taken = []
    for _ in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return taken[1:]


def workers_memory(supervisor: int) -> list[float]:
    """Return the memory of the processes of a service, once all of them are idle."""
    workers = [child.pid for child in psutil.Process(supervisor).children()]
    before = -1.0
    while (taken := sum(map(processor_seconds_of, workers))) > before + 0.05:
        before = taken
        time.sleep(SETTLE_SECONDS)
    return [psutil.Process(pid).memory_full_info().uss / 1e6 for pid in workers]


def main() -> int:
    """Measure and compare."""
    parser = speed_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    report = SpeedReport(__file__, options)
    # Bytecode is written once and read from then on, as after an installation.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(PHOTOGRAPHS, folder / "photos")

        def measured(*words: str) -> list[float]:
            return program_seconds(words, options.repeats, folder)

        typer = float(np.median(measured("-c", "import typer")))
        limit = f"{TYPER_BAR:g} × import typer"
        shown = measured("-m", "diptych", "--help")
        report.bound("diptych --help", shown, TYPER_BAR * typer, unit=PROCESSOR_SECONDS, limit=limit)
        subprocess.run([sys.executable, "-m", "diptych", "index", "photos", "-q"], cwd=folder, check=True)
        searched = measured("-m", "diptych", "search", "-c", "photos", "dog")
        report.cost("diptych search", searched, unit=PROCESSOR_SECONDS)
        serving = [sys.executable, "-m", "diptych", "serve", str(folder / "photos"), "--quiet"]
        ready = []
        for _ in range(options.repeats):
            port = free_port()
            with process([*serving, f"--port={port}"], f"{port}/ready", folder) as pid:
                ready.append(processor_seconds_of(pid))
        report.cost("a worker of the service until it is ready", ready, unit=PROCESSOR_SECONDS)
        port = free_port()
        with process([*serving, f"--port={port}", "--workers=2"], f"{port}/ready", folder) as pid:
            memory = workers_memory(pid)
        report.bound("memory of an idle worker of the service", memory, IDLE_MEGABYTES_BAR, unit="MB")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
