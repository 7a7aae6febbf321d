"""The arguments of the campaigns, and the record to which each adds what it found.

The record, ``results/reliability.jsonl``, has a line for each round; ``reliability_page.py`` adds them up. Seeds go on
from those recorded, so that no round is repeated, and a campaign that is interrupted has lost its last round only.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

RECORD = Path(__file__).with_name("results") / "reliability.jsonl"

Outcome = tuple[dict[str, int], list[str]]
"""What was counted in a round, and what went wrong."""


def arguments(description: str | None, *, minutes: float) -> argparse.ArgumentParser:
    """Return a parser with what all scripts take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=minutes, help="begin nothing after so long")
    parser.add_argument("--record", type=Path, default=RECORD, help="where rounds are added, a line each")
    return parser


def recorded(record: Path) -> list[dict[str, Any]]:
    """Return the rounds of a record, oldest first."""
    return [json.loads(line) for line in record.read_text("utf-8").splitlines()] if record.exists() else []


def next_seed(record: Path, fault: str) -> int:
    """Return a seed that no recorded round of a fault had."""
    return max((line["seed"] for line in recorded(record) if line["fault"] == fault), default=-1) + 1


def add_round(record: Path, fault: str, seed: int, **found: Any) -> None:
    """Add a round to the record, and print it."""
    line = json.dumps({"fault": fault, "date": f"{datetime.now(UTC):%Y-%m-%d}", "seed": seed, **found})
    with record.open("a", encoding="utf-8") as stream:
        stream.write(f"{line}\n")
    print(line, flush=True)


def campaign(
    description: str | None,
    fault: str,
    run_round: Callable[[int, int], Outcome],
    *,
    trials: int,
    at_once: int,
    others: Mapping[str, tuple[str, Callable[[int, int], Outcome]]] | None = None,
) -> int:
    """Run rounds of ``at_once`` trials as the command line asks, tell what went wrong, and return the exit code.

    ``run_round`` gets the number of trials and a seed. ``others`` are further faults by the word that asks for each,
    with their names in the record.
    """
    parser = arguments(description, minutes=float("inf"))
    parser.add_argument("--trials", type=int, default=trials, help="so many further ones, %(default)s by default")
    parser.add_argument("--fault", choices=list(others or {}), help="another fault than the usual one")
    options = parser.parse_args()
    if options.fault is not None:
        fault, run_round = (others or {})[options.fault]
    begun, left, has_failed = time.monotonic(), options.trials, False
    while left > 0 and time.monotonic() - begun < 60 * options.minutes:
        busy, seed = processor_seconds(), next_seed(options.record, fault)
        counts, wrong = run_round(min(left, at_once), seed)
        add_round(options.record, fault, seed, **counts, processor_seconds=round(processor_seconds() - busy, 1))
        for problem in wrong[:20]:
            print(problem, file=sys.stderr, flush=True)
        has_failed |= bool(wrong)
        left -= counts["trials"]
    return 1 if has_failed else 0


def failures(trials: int, run_trial: Callable[[int], list[str]]) -> tuple[int, list[str]]:
    """Run numbered trials one after the other; return how many failed, and what went wrong."""
    failed, wrong = 0, list[str]()
    for number in range(trials):
        problems = run_trial(number)
        failed += bool(problems)
        wrong += [f"trial {number}: {problem}" for problem in problems]
    return failed, wrong


def wait_until(is_over: Callable[[], bool], seconds: float) -> None:
    """Return when it is over, or after so many seconds."""
    deadline = time.monotonic() + seconds
    while not is_over() and time.monotonic() < deadline:
        time.sleep(0.005)


def processor_seconds_of(pid: int) -> float:
    """Return the processor time of a process, infinity where it has ended."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return math.inf
    return times.user + times.system


def has_ended(pid: int) -> bool:
    """Return True if a process has ended, also where its parent has not heard of it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])
