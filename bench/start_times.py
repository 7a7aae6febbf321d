"""How long the program takes to start: imports, every command beside ``import typer``, and a worker of the service.

    python -m bench.start_times [--quick] [--repeats N]

Processor time, its own and that of the system, the median of some runs after one that prepares, of: the packages beyond
an empty program; the help of the program and of ``search``; a command that does not exist; ``diptych status`` and
``diptych search`` on the 42 photographs that come with Diptych, with everything prepared that is prepared once; and the
same search while ``diptych serve`` has the collection open. A worker of the service is measured from its start until
``/ready`` answers, when its networks are loaded and a search was answered. Memory is what belongs to one process alone:
of a service of one, pages of libraries and networks that it maps from files are among it, which the system takes back
as it needs them and workers beside each other share. The bar is for one of two workers. The index of 42 photographs is
nothing beside either. Bars: 0.15 s for ``diptych``, 0.5 s for ``diptych.models``; help, mistakes, ``status`` and the
served search take at most 5 times as long as ``import typer``, a search on its own at most 1.2 s; a worker is ready
after 2 s and has 200 MB. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import os
import re
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
from bench.service_load import free_port, process
from bench.speed_report import SpeedReport, speed_parser

IMPORT_BARS = {"diptych": 0.15, "diptych.models": 0.5}
RATIO_BAR, SEARCH_BAR, READY_BAR, IDLE_BAR = 5.0, 1.2, 2.0, 200.0
SETTLED_SECONDS = 2.0
PHOTOGRAPHS = Path(diptych.__file__).parent / "data" / "photographs"
UNIT = "processor s"


def seconds(words: list[str], repeats: int, place: Path) -> list[float]:
    """Return the processor times of a program, after a run that prepares."""
    taken = []
    for _ in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], cwd=place, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return taken[1:]


def taken_by(number: int) -> float:
    """Return the processor seconds that a process took so far."""
    used = psutil.Process(number).cpu_times()
    return used.user + used.system


def own_memory(number: int) -> float:
    """Return the megabytes that belong to a process alone."""
    own = re.findall(r"Private_(?:Clean|Dirty): +(\d+)", Path(f"/proc/{number}/smaps_rollup").read_text())
    return sum(map(int, own)) * 1024 / 1e6


def workers_memory(supervisor: int) -> list[float]:
    """Return the memory of the processes of a service, once all of them are ready and none takes time any more."""
    before = -1.0
    while (taken := sum(map(taken_by, numbers := children(supervisor)))) > before + 0.05:
        before = taken
        time.sleep(SETTLED_SECONDS)
    return [own_memory(number) for number in numbers]


def children(number: int) -> list[int]:
    """Return the processes that a process has started."""
    return [child.pid for child in psutil.Process(number).children()]


def main() -> int:
    """Measure and compare."""
    parser = speed_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    report = SpeedReport(__file__, options)
    # Bytecode is written once and read from then on, as after an installation.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.copytree(PHOTOGRAPHS, place / "photos")

        def measured(*words: str) -> list[float]:
            return seconds(list(words), options.repeats, place)

        empty = float(np.median(measured("-c", "pass")))
        for package, most in IMPORT_BARS.items():
            taken = [each - empty for each in measured("-c", f"import {package}")]
            report.bound(f"import {package}", taken, most, unit=UNIT)
        typer = float(np.median(measured("-c", "import typer")))

        def show(title: str, words: str) -> None:
            taken = measured("-m", "diptych", *words.split())
            report.bound(title, taken, RATIO_BAR * typer, unit=UNIT, limit=f"{RATIO_BAR:g} × import typer")

        for words in ("--help", "nonsense", "search --help"):
            show(f"diptych {words}", words)
        subprocess.run([sys.executable, "-m", "diptych", "index", "photos", "-q"], cwd=place, check=True)
        show("diptych status", "status -c photos")
        searching = measured("-m", "diptych", "search", "-c", "photos", "dog")
        report.bound("diptych search", searching, SEARCH_BAR, unit=UNIT)
        serving = [sys.executable, "-m", "diptych", "serve", str(place / "photos"), "--quiet"]
        ready, alone = [], []
        for _ in range(options.repeats):
            port = free_port()
            with process([*serving, f"--port={port}"], f"{port}/ready", place) as number:
                ready.append(taken_by(number))
                alone.append(own_memory(number))
        report.bound("a worker of the service until it is ready", ready, READY_BAR, unit=UNIT)
        report.cost("memory of an idle service of one process", alone, unit="MB")
        port = free_port()
        with process([*serving, f"--port={port}", "--workers=2"], f"{port}/ready", place) as number:
            report.bound("memory of an idle worker of the service", workers_memory(number), IDLE_BAR, unit="MB")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
