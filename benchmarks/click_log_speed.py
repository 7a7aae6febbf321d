"""The click log: what recording a search costs, and a report over many.

    python benchmarks/click_log_speed.py [--searches N]

Bars: recording takes under 0.2 ms at the median, since every search waits for it; the report over 100,000 searches, as
the page shows it, under 2 s. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from diptych.service.clicks import ClickLog

RECORD_BAR, REPORT_BAR = 0.2e-3, 2.0
_BATCH = 2_000
_SHOWN = [(f"{number:032x}", number) for number in range(1, 31)]
_FACTS = {"retriever": "r", "fingerprint": "f", "target": "images", "no_good_match": False, "best_probability": 0.5}


def record(log: ClickLog, searches: int) -> float:
    """Record searches, some with a click, and return the median time of recording one."""
    seconds = []
    for turn in range(searches):
        query = f"a dog on beach {turn % 1000}"
        start = time.perf_counter()
        found = log.record_search(query=query, shown=_SHOWN, terms=[{"text": query, "weight": 1.0}], **_FACTS)
        seconds.append(time.perf_counter() - start)
        if turn % _BATCH == 0:
            log.flush()
        if found is not None and turn % 50 == 0:
            log.record_click(search_id=found, item=_SHOWN[0][0], position=1, kind="open")
    log.flush()
    return statistics.median(seconds)


def main() -> int:
    """Measure, print, and return whether a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=100_000)
    searches = parser.parse_args().searches
    with tempfile.TemporaryDirectory() as folder, ClickLog(Path(folder) / "clicks.sqlite") as log:
        recording = record(log, searches)
        start = time.perf_counter()
        report = log.report(30)
        reporting = time.perf_counter() - start
    print(f"recording a search: {recording * 1e3:.3f} ms at the median")
    print(f"report over {report.searches:,} searches: {reporting:.2f} s")
    return int(recording > RECORD_BAR or reporting > REPORT_BAR)


if __name__ == "__main__":
    sys.exit(main())
