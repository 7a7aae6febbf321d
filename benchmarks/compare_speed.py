"""Hold a new run of the speed scripts against the recorded one, and fail where a ratio was lost.

    python benchmarks/compare_speed.py RECORDED NEW

``make bench-compare`` makes the new run and calls it. A ratio is lost when it falls by more than 15 % beyond the spread
of both runs: the recorded one less its spread, times 0.85, is above the new one with its spread. A row that the new run
lacks fails as well, unless its peer is not installed. Ratios are of things measured in turns on one machine, so that
runs of two machines can be compared, with care; two forms, quick and full, cannot.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

MOST_LOST = 0.15
Key = tuple[str, str, int | None, str | None]


def ratios(record: dict[str, Any]) -> dict[Key, dict[str, Any]]:
    """Return the rows that compare, by what they compare."""
    compared = (row for row in record["rows"] if row["peer"] or row["limit"])
    return {(row["script"], row["work"], row["size"], row["peer"] or row["limit"]): row for row in compared}


def verdict(before: dict[str, Any], after: dict[str, Any] | None) -> str:
    """Return ``missing``, ``not installed``, ``lost``, ``gained`` or ``same``, the last two only for the reader."""
    if after is None:
        return "missing"
    if before["ratio"] is None or after["ratio"] is None:
        return "not installed"
    if _is_clearly_less(after, before):
        return "lost"
    return "gained" if _is_clearly_less(before, after) else "same"


def _is_clearly_less(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one["ratio"] * (1 + one["spread"]) < (1 - MOST_LOST) * other["ratio"] * (1 - other["spread"]))


def main(arguments: list[str] | None = None) -> int:
    """Print what is not the same and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorded", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args(arguments)
    recorded, new = (json.loads(path.read_text(encoding="utf-8")) for path in (options.recorded, options.new))
    if recorded["form"] != new["form"]:
        raise SystemExit(f"the recorded run is {recorded['form']} and the new one {new['form']}; run the same form")
    before, after = ratios(recorded), ratios(new)
    verdicts = {key: verdict(row, after.get(key)) for key, row in before.items()}
    for key, judged in verdicts.items():
        if judged != "same":
            script, work, size, other = key
            numbers = [f"{row[key]['ratio']:.2f}" for row in (before, after) if key in row and row[key]["ratio"]]
            print(f"{judged:<14}{script}: {work}{f', {size:,}' if size else ''}, {other}: {' -> '.join(numbers)}")
    failures = sum(judged in ("lost", "missing") for judged in verdicts.values())
    print(f"{len(verdicts)} ratios compared, {failures} lost or missing, {len(after.keys() - before.keys())} new")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
