"""What ``diptych plan`` predicts, beside what collections of several sizes really take.

Collections with stand-in points, a caption of eight words, a label and three fields for each item are filled, put into
search files and searched, each by a process of its own with one thread, so that seconds are those of one core and other
work on the machine changes them little. Points fill 32 dimensions and have no clusters, which is hard for lists.

    python benchmarks/planning.py --items 100000 1000000 4000000 [--dims 256 | --bits 128] [--folder /var/tmp/planning]

Bars: memory and disk within a factor of 1.3 of the prediction, times within 2. What was measured is kept in
``--folder`` and not measured again. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from diptych.collection import RetrieverCosts, plan_collection
from diptych.collection.storage.store import Store
from filled_collection import Peak, PointRetriever, fill, opened, private_megabytes

_MEGABYTE = 1e6
_SEARCHES, _FURTHER = 300, 30
# Files of old versions are kept for a minute.
_KEPT_SECONDS = 61
ROOM_BAR, TIME_BAR = 1.3, 2.0
# Searches read these in a few places, and the system holds what lies around them, as long as there is room.
_IN_PLACES = ("vectors.npy", "items.arrow")
SINGLE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def fill_step(folder: Path, items: int, retriever: PointRetriever) -> dict[str, float]:
    """Fill a collection and build what searches use; return core seconds and the most memory."""
    with Peak() as peak:
        seconds = fill(folder, items, retriever, caption_points=True, clock=time.process_time)
    time.sleep(_KEPT_SECONDS)
    Store(folder / "store").compact(everything=True)
    return {
        "build memory, MB": peak.megabytes * 2**20 / _MEGABYTE,
        **{f"{name}, core s": value for name, value in seconds.items()},
    }


def ask_step(folder: Path) -> dict[str, float]:
    """Open a collection as a worker of the service does, search it, and return what it takes."""
    with opened(folder) as collection:
        for turn in range(_FURTHER):
            collection.search(f"first {turn}")
        started = time.process_time()
        for turn in range(_SEARCHES):
            collection.search(f"query {turn % 100}")
        found = {"search, core ms": 1000 * (time.process_time() - started) / _SEARCHES}
        for turn in range(_FURTHER):
            collection.search(f"word{turn} word{turn + 300}", hybrid=True)
            collection.search("x", filter=f'year>={1960 + turn} and camera:"camera {turn % 20}"')
        for turn in range(_SEARCHES):
            collection.search(f"caption {turn}", target="texts")
        collection.facets()
        found["own memory, MB"] = private_megabytes() * 2**20 / _MEGABYTE
        found.update({f"mapped {name}, MB": size / _MEGABYTE for name, size in _resident(folder).items()})
        return found


def compared(found: dict[str, float], items: int, dims: int, bits: int) -> dict[str, tuple[float, float, float]]:
    """Return what was predicted, what was measured, and the bar of their ratio."""
    nothing = RetrieverCosts(0, 0, 0, 0.0, 0.0)
    plan = plan_collection(items, 1, dims=dims, bits=bits or None, cores=1, retriever=nothing)
    in_places = () if plan.index in ("whole", "codes") else _IN_PLACES[:1]
    left_out = {f"mapped {name}, MB" for name in (*in_places, _IN_PLACES[1])}
    mapped = sum(size for name, size in found.items() if name.startswith("mapped ") and name not in left_out)
    build = sum(seconds for name, seconds in found.items() if name.endswith(", core s"))
    return {
        "tables, MB": (plan.store / _MEGABYTE, found["store, MB"], ROOM_BAR),
        "search files, MB": (plan.search_files / _MEGABYTE, found["search files, MB"], ROOM_BAR),
        "memory of a process, MB": (plan.own_memory / _MEGABYTE, found["own memory, MB"], ROOM_BAR),
        "files in use, MB": (plan.mapped_memory / _MEGABYTE, mapped, ROOM_BAR),
        "memory while building, MB": (plan.build_memory / _MEGABYTE, found["build memory, MB"], ROOM_BAR),
        "search, ms of a core": (1000 * plan.search_core_seconds, found["search, core ms"], TIME_BAR),
        "building, s of a core": (plan.build_core_seconds, build, TIME_BAR),
    }


def _resident(folder: Path) -> dict[str, float]:
    """Return how much of each kind of file is in this process's memory, in bytes."""
    sizes: dict[str, float] = defaultdict(float)
    name = None
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            path = line.split(maxsplit=5)[5:]
            name = Path(path[0]).name if path and path[0].startswith(str(folder)) else None
        elif name is not None and line.startswith("Rss:"):
            sizes[name] += 1024 * int(line.split()[1])
    return dict(sizes)


def _disk(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / _MEGABYTE


def measured(base: Path, items: int, dims: int, bits: int) -> dict[str, float]:
    """Return what a collection takes, measured now or before."""
    form = f"{items}-{f'{bits}-bits' if bits else dims}"
    kept, folder = base / f"measured-{form}.json", base / f"collection-{form}"
    if kept.exists():
        return json.loads(kept.read_text())
    shutil.rmtree(folder, ignore_errors=True)
    found = {}
    for step in ("fill", "ask"):
        command = [sys.executable, __file__, "--step", step, "--items", str(items), "--folder", str(folder)]
        command += ["--dims", str(dims), "--bits", str(bits)]
        run = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **SINGLE_THREAD}
        )
        found.update(json.loads(run.stdout.splitlines()[-1]))
    found.update({"store, MB": _disk(folder / "store"), "search files, MB": _disk(folder / "index")})
    kept.write_text(json.dumps(found, indent=1))
    shutil.rmtree(folder)
    return found


def main() -> None:
    """Run all sizes, or the one step that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[100_000, 1_000_000, 4_000_000])
    parser.add_argument("--dims", type=int, default=256)
    parser.add_argument("--bits", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--step", choices=("fill", "ask"))
    arguments = parser.parse_args()
    if arguments.step == "fill":
        retriever = PointRetriever(arguments.bits or arguments.dims, is_codes=bool(arguments.bits))
        print(json.dumps(fill_step(arguments.folder, arguments.items[0], retriever)))
        return
    if arguments.step == "ask":
        print(json.dumps(ask_step(arguments.folder)))
        return
    base = arguments.folder or Path(tempfile.mkdtemp())
    base.mkdir(parents=True, exist_ok=True)
    missed = 0
    for items in arguments.items:
        found = measured(base, items, arguments.dims, arguments.bits)
        print(f"\n{items:,} items, {f'{arguments.bits} bits' if arguments.bits else f'{arguments.dims} numbers'}")
        for name, (predicted, real, bar) in compared(found, items, arguments.dims, arguments.bits).items():
            is_missed = not 1 / bar <= predicted / real <= bar
            missed += is_missed
            verdict = f"bar {bar}: {'MISSED' if is_missed else 'met'}"
            print(f"{name:28s} {predicted:12,.1f} {real:12,.1f} {predicted / real:6.2f}  {verdict}", flush=True)
    if arguments.folder is None:
        shutil.rmtree(base)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
