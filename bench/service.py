"""How soon the page shows pictures after one stops typing.

    python -m bench.service [--quick] [--items N] [--queries N]

A real browser types queries into the page of a real ``diptych serve`` of 10,000 items. The page marks when it asks,
which is when the keyboard has paused, and when the first thumbnail of the answer is painted; measured is the time
between. Bar, of the median: 200 ms. Chromium is that of ``CHROMIUM``, or on the search path. A crowd on the
service is in ``mixed_load.py``.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from bench.filled_collection import painted_collection, phrases
from bench.report import SpeedReport, speed_parser
from bench.servers import free_port, process

PAGE_MILLISECONDS_BAR = 200.0
WARM_UP = 3
# The page may mark one question more than once, should it ask again; the first picture after the last one counts.
LAST_MARKS = """() => {
    const last = (name) => performance.getEntriesByName(name).at(-1)?.startTime ?? null;
    return [last("diptych:asked"), last("diptych:shown")];
}"""
IS_SHOWN = """(before) => {
    const last = (name) => performance.getEntriesByName(name).at(-1)?.startTime ?? -1;
    return last("diptych:asked") > before && last("diptych:shown") > last("diptych:asked");
}"""


def milliseconds(page: Page, query: str) -> float:
    """Type a query and return the time from the question to the first picture."""
    box = page.get_by_role("searchbox").or_(page.get_by_role("combobox")).first
    before = page.evaluate("performance.now()")
    box.fill(query)
    page.wait_for_function(IS_SHOWN, arg=before, timeout=60_000)
    asked, shown = page.evaluate(LAST_MARKS)
    return float(shown - asked)


def page_times(port: int, queries: list[str]) -> list[float]:
    """Return the times of queries that are typed into the page, after a few that warm up."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        times = [milliseconds(page, query) for query in queries]
        browser.close()
    return times[WARM_UP:]


def main() -> int:
    """Measure, print and return the exit code."""
    parser = speed_parser(__doc__)
    parser.add_argument("--items", type=int)
    parser.add_argument("--queries", type=int, default=20)
    options = parser.parse_args()
    items, count = options.items or (1_000 if options.quick else 10_000), options.queries + WARM_UP
    report = SpeedReport(__file__, options)
    queries = phrases()[:: max(1, len(phrases()) // count)][:count]
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        folder, port = painted_collection(room / "page", items), free_port()
        serving = [sys.executable, "-m", "diptych", "serve", str(folder), "--name=page", f"--port={port}"]
        with process([*serving, "--rate-limit=0", "--quiet"], f"{port}/ready", room):
            times = page_times(port, queries)
    work = f"first picture on the page after a query at {items:,} items"
    report.bound(work, times, PAGE_MILLISECONDS_BAR, unit="ms")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
