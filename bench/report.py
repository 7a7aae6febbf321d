"""Shared by the speed campaigns: arguments, turns, ratios with their spread, and the record of what was measured.

Ours and theirs are measured in turns, so that other work on the machine affects both. A ratio says how many times
better we are: the median over the turns of theirs by ours where less is better, of ours by theirs for rates (units that
end in ``/s``). Its spread is half the distance between its quartiles, as a share of it. Others are peers (another
library for the same result) or limits (work that cannot be avoided, or a bar).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cpuinfo
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

VERSIONS = ("numpy", "scipy", "scikit-learn", "onnxruntime", "faiss-cpu")
PROCESSOR_SECONDS = "processor s"

Clock = Callable[[], float]
Runs = Mapping[str, Callable[[], object] | None]


def peak_resident_bytes() -> int:
    """Return the most memory that this process has had at once."""
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage if sys.platform == "darwin" else usage * 1024


@dataclass(frozen=True)
class Row:
    """One measurement, and what it is compared with, if anything."""

    script: str
    work: str
    ours: float
    unit: str
    peer: str | None = None
    limit: str | None = None
    theirs: float | None = None
    ratio: float | None = None
    spread: float | None = None
    bar: float | None = None
    note: str | None = None

    @property
    def is_missed(self) -> bool:
        """True if the ratio is below its bar."""
        return self.bar is not None and self.ratio is not None and self.ratio < self.bar

    def __str__(self) -> str:
        line = f"{self.work:<58}{self.ours:>10.4g} {self.unit}"
        if (other := self.peer or self.limit) is not None:
            line += f"   {other}: " + ("not installed" if self.theirs is None else f"{self.theirs:.4g}")
        if self.ratio is not None:
            line += f", {self.ratio:.2f}x ±{self.spread or 0:.0%}"
        if self.bar is not None:
            line += f" (bar {self.bar:g}x{', missed' if self.is_missed else ''})"
        return line


class SpeedReport:
    """Collects the rows of a campaign, prints them as they come, and ends with the exit status."""

    def __init__(self, script: str, options: argparse.Namespace, *, threads: int | None = None) -> None:
        self._script = Path(script).stem
        self._json: Path | None = options.json
        self._rows: list[Row] = []
        self._missed: list[str] = []
        self._threads = threadpool_limits(threads)
        load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
        print(f"{self._script}: {len(available_cores())} cores{load}", flush=True)

    def compare(
        self,
        work: str,
        ours: Sequence[float],
        theirs: Sequence[float] | None,
        *,
        unit: str = "s",
        bar: float | None = None,
        **facts: str | None,
    ) -> None:
        """Add what the turns took, ours beside a peer's or a limit's; ``theirs`` is None for a peer that is missing."""
        mine = float(np.median(ours))
        if theirs is None:
            self._add(Row(self._script, work, mine, unit, **facts))
            return
        ratios = np.asarray(ours) / np.asarray(theirs) if unit.endswith("/s") else np.asarray(theirs) / np.asarray(ours)
        ratio, (low, high) = float(np.median(ratios)), np.percentile(ratios, [25, 75])
        compared = {"ratio": ratio, "spread": float((high - low) / 2 / ratio), "bar": bar}
        self._add(Row(self._script, work, mine, unit, theirs=float(np.median(theirs)), **compared, **facts))

    def race(
        self,
        work: str,
        ours: Callable[[], object],
        peers: Runs,
        repeats: int,
        *,
        limits: Runs | None = None,
        bars: Mapping[str, float] | None = None,
        clock: Clock = time.process_time,
    ) -> None:
        """Measure ours beside peers and limits, in turns, and add a row for each of them."""
        unit = PROCESSOR_SECONDS if clock is time.process_time else "s"
        times = in_turns({"ours": ours, **peers, **(limits or {})}, repeats, clock=clock)
        for kind, others in (("peer", peers), ("limit", limits or {})):
            for name in others:
                bar = (bars or {}).get(name)
                self.compare(work, times["ours"], times.get(name), unit=unit, bar=bar, **{kind: name})

    def bound(self, work: str, ours: Sequence[float], bound: float, *, unit: str = "s", limit: str = "bar") -> None:
        """Add what must not be above a bound (below it, for rates)."""
        self.compare(work, ours, np.full(len(ours), bound), limit=limit, unit=unit, bar=1.0)

    def cost(self, work: str, ours: Sequence[float], *, unit: str = "s") -> None:
        """Add what nothing is compared with."""
        self._add(Row(self._script, work, float(np.median(ours)), unit))

    def hold(self, what: str, is_met: bool, shown: str) -> None:
        """Print a condition that speed must not cost, such as agreement, and remember when it is not met."""
        print(f"{what}: {shown}{'' if is_met else ' (missed)'}", flush=True)
        if not is_met:
            self._missed.append(what)

    def finish(self) -> int:
        """Write the rows where they were asked for, name the bars that were missed, and return the exit status."""
        if self._json is not None:
            content = {"machine": machine_facts(), "rows": [asdict(row) for row in self._rows]}
            self._json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        missed = [*(row.work for row in self._rows if row.is_missed), *self._missed]
        print(f"missed: {', '.join(missed)}" if missed else "all bars met")
        return 1 if missed else 0

    def _add(self, row: Row) -> None:
        self._rows.append(row)
        print(row, flush=True)


def speed_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the arguments of every speed campaign."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a try")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows and the facts of the machine there")
    return parser


def in_turns(runs: Runs, repeats: int, *, clock: Clock = time.perf_counter) -> dict[str, list[float]]:
    """Return the times of each run, one after the other in every turn; those that are None are left out.

    A first turn loads libraries and fills caches, and is not counted.
    """
    present = {name: run for name, run in runs.items() if run is not None}
    times: dict[str, list[float]] = {name: [] for name in present}
    for _ in range(repeats + 1):
        for name, run in present.items():
            started = clock()
            run()
            times[name].append(clock() - started)
    return {name: taken[1:] for name, taken in times.items()}


def peak_growth(work: Callable[[], object]) -> int:
    """Return by how many bytes the peak memory of this process grows while some work is done."""
    before = peak_resident_bytes()
    work()
    return peak_resident_bytes() - before


def installed(package: str) -> bool:
    """Return True if a peer can be imported."""
    return importlib.util.find_spec(package) is not None


def available_cores() -> set[int]:
    """Return the cores that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def machine_facts() -> dict[str, Any]:
    """Return what the numbers depend on besides us."""
    blas = sorted({f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if "blas" in str(pool)})
    return {
        "processor": _processor(),
        "cores": len(available_cores()),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        **{name: _version(name) for name in VERSIONS},
        "blas": ", ".join(blas),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    return str(cpuinfo.get_cpu_info().get("brand_raw") or platform.processor() or platform.machine())
