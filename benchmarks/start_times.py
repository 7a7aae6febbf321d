"""How long the program takes to start: every command beside ``import typer``, which all of them import.

    python benchmarks/start_times.py [--repeats N]

Processor time, its own and that of the system, the least of some runs, of: the help of the program and of each command;
a command that does not exist; ``diptych status`` and ``diptych search`` on the 42 photographs that come with Diptych,
with everything prepared that is prepared once; and the same search while ``diptych serve`` has the collection open.
Bars: help, mistakes, ``status`` and the served search take at most 5 times as long as ``import typer``, and a search on
its own at most 1.2 s. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import diptych
from diptych.cli.lazy_commands import LazyCommand, lazy_commands
from service_load import free_port, process

RATIO_BAR, SEARCH_BAR = 5.0, 1.2
PHOTOGRAPHS = Path(diptych.__file__).parent / "data" / "photographs"


def commands(group: object = None, before: str = "") -> list[str]:
    """Return the words of every command."""
    members = lazy_commands() if group is None else group.commands.values()  # type: ignore[attr-defined]
    found: list[str] = []
    for each in members:
        words = f"{before}{each.name}"
        found += [words] if isinstance(each, LazyCommand) else commands(each, f"{words} ")
    return found


def seconds(words: list[str], repeats: int, place: Path) -> float:
    """Return the processor time of a program, the least of some runs after one that prepares."""
    taken = []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], cwd=place, env=environment, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken[1:])


def main() -> int:
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.copytree(PHOTOGRAPHS, place / "photos")
        typer = seconds(["-c", "import typer"], repeats, place)
        print(f"{'import typer':<28}{typer:6.2f} s   1.0")

        def show(words: str, *, ratio: float | None = RATIO_BAR, limit: float | None = None, title: str = "") -> None:
            taken = seconds(["-m", "diptych", *words.split()], repeats, place)
            is_missed = (ratio is not None and taken > ratio * typer) or (limit is not None and taken > limit)
            missed.extend([title or words] if is_missed else [])
            mark = "  above the bar" if is_missed else ""
            print(f"{title or words:<28}{taken:6.2f} s {taken / typer:5.1f}{mark}", flush=True)

        show("--help")
        show("nonsense")
        for words in commands():
            show(f"{words} --help")
        subprocess.run([sys.executable, "-m", "diptych", "index", "photos", "-q"], cwd=place, check=True)
        collection = "-c photos"
        show(f"status {collection}", title="status")
        show(f"search {collection} dog", ratio=None, limit=SEARCH_BAR, title="search")
        port = free_port()
        serving = [sys.executable, "-m", "diptych", "serve", str(place / "photos"), f"--port={port}", "--quiet"]
        with process(serving, f"{port}/ready", place):
            show(f"search {collection} dog", title="search, served")
    print("bars missed: " + ", ".join(missed) if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
