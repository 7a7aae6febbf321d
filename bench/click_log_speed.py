"""The click log: what recording a search costs, and a report over many.

    python -m bench.click_log_speed [--quick] [--searches N]

Bars: recording takes under 0.2 ms at the median, since every search waits for it; the report over 100,000 searches, as
the page shows it, under 2 s. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench.speed_report import SpeedReport, in_turns, speed_parser
from diptych.service.clicks import ClickLog

RECORD_BAR, REPORT_BAR = 0.2e-3, 2.0
_BATCH = 2_000
_SHOWN = [(f"{number:032x}", number) for number in range(1, 31)]
_FACTS = {"retriever": "r", "fingerprint": "f", "target": "images", "no_good_match": False, "best_probability": 0.5}


def record(log: ClickLog, searches: int) -> list[float]:
    """Record searches, some with a click, and return the time of recording each."""
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
    return seconds


def main() -> int:
    """Measure, print, and return whether a bar was missed."""
    parser = speed_parser(__doc__)
    parser.add_argument("--searches", type=int)
    options = parser.parse_args()
    searches = options.searches or (20_000 if options.quick else 100_000)
    report = SpeedReport(__file__, options)
    with tempfile.TemporaryDirectory() as folder, ClickLog(Path(folder) / "clicks.sqlite") as log:
        report.bound("recording a search in the click log", record(log, searches), RECORD_BAR)
        reporting = in_turns({"report": lambda: log.report(30)}, 3)["report"]
        report.bound(f"the page's report over {searches:,} searches", reporting, REPORT_BAR)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
