"""Write docs/results/performance.md from what the speed campaigns measured.

``make bench`` runs the campaigns and then this. The page keeps to what a person feels or pays for.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.campaign import RECORD as TRIALS
from bench.campaign import recorded
from bench.report import VERSIONS

RECORD = Path(__file__).with_name("results") / "speed.json"
PAGE = Path(__file__).parents[1] / "docs" / "results" / "performance.md"
SECTIONS = {
    "Start": ("start",),
    "Learning": ("models", "click_learning"),
    "Measures": ("measures",),
    "Search": ("search", "million_items"),
    "Indexing": ("indexing",),
    "Service": ("service",),
}
HEAD = "| work | measured | beside it |\n|---|---:|---|"


def page(record: dict[str, Any], crowd: dict[str, Any]) -> str:
    """Return the page: what the campaigns recorded, and the last crowd on the service."""
    parts = [introduction(record)]
    for title, scripts in SECTIONS.items():
        works: dict[str, list[dict[str, Any]]] = {}
        for row in record["rows"]:
            if row["script"] in scripts:
                works.setdefault(row["work"], []).append(row)
        lines = [work_line(work, rows) for work, rows in works.items()]
        if title == "Service":
            lines.append(crowd_line(crowd))
        if not lines:
            continue
        parts.append("\n".join([f"## {title}\n", HEAD, *lines]))
    return "\n\n".join(parts) + "\n"


def introduction(record: dict[str, Any]) -> str:
    """Return what the numbers mean and where they were measured."""
    machine = record["machine"]
    versions = ", ".join(f"{name} {machine[name]}" for name in VERSIONS)
    return f"""# Performance

<!-- Made by bench/performance_page.py from bench/results/speed.json. -->

What people feel or pay for, beside other libraries for the same result where there are some, and beside limits: work
that cannot be avoided, or a bar that was set. `make bench` measures all of it and makes this page.

The last column has their number and in brackets how many times better we are: above 1 is in our favour. Ours and theirs
are measured in turns, and both are medians. *Processor s* are seconds of one core, which other work on the machine
changes less; *s* are by the clock.

Measured on {machine["date"]} on {machine["cores"]} cores of {machine["processor"]} ({machine["architecture"]}) with
{machine["memory_gib"]:g} GiB: Python {machine["python"]}, {versions}.
{record.get("remark") or ""}""".rstrip()


def work_line(work: str, rows: list[dict[str, Any]]) -> str:
    """Return one line of a table: a work with everything it is compared with."""
    beside = [compared(row) for row in rows if row["ratio"] is not None]
    beside += sorted({row["note"] for row in rows if row["note"]})
    return f"| {work} | {quantity(rows[0]['ours'], rows[0]['unit'])} | {'; '.join(beside) or '–'} |"


def compared(row: dict[str, Any]) -> str:
    """Return a peer or limit with its number and the ratio."""
    return f"{row['peer'] or row['limit']} {quantity(row['theirs'], row['unit'])} ({row['ratio']:.3g}×)"


def quantity(value: float, unit: str) -> str:
    """Return a number with its unit; short times in milliseconds."""
    if unit in ("s", "processor s") and value < 0.1:
        return f"{1e3 * value:.3g} {unit.removesuffix('s')}ms"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def crowd_line(crowd: dict[str, Any]) -> str:
    """Return what a crowd on the service met."""
    work = (
        f"searches of {crowd['clients']} clients that search, click and write for {crowd['minutes']:g} minutes, median"
    )
    beside = (
        f"99th percentile {crowd['p99_ms']:.0f} ms; {crowd['requests']:,} requests, {crowd['lost']} changes lost; "
        f"a load of {crowd['load_before']:.0f} to {crowd['load']:.0f}, most of it other work"
    )
    return f"| {work} | {crowd['p50_ms']:.0f} ms | {beside}; see [reliability](reliability.md) |"


def main(target: Path = PAGE) -> None:
    """Read the records and write the page."""
    crowd = next(line for line in reversed(recorded(TRIALS)) if line["fault"] == "a crowd")
    target.write_text(page(json.loads(RECORD.read_text(encoding="utf-8")), crowd), encoding="utf-8")
    print(f"{target} is made from {RECORD}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
