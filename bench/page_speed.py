"""How soon the page shows pictures after one stops typing, at 10,000 items.

    python -m bench.page_speed [--quick] [--items N] [--queries N]

A real browser types queries into the page of a real ``diptych serve``. The page marks when it asks, which is when the
keyboard has paused, and when the first thumbnail of the answer is painted; measured is the time between. Bar: 200 ms in
the median. The command exits with 1 when it is missed. Chromium is that of ``CHROMIUM``, or on the search path.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from bench.painted_collection import painted_collection, phrases
from bench.service_load import free_port, process
from bench.speed_report import SpeedReport, speed_parser

BAR = 200.0
# The page may mark one question more than once, should it ask again; the first picture after the last one counts.
_LAST = """() => {
    const last = (name) => performance.getEntriesByName(name).at(-1)?.startTime ?? null;
    return [last("diptych:asked"), last("diptych:shown")];
}"""
_IS_SHOWN = """(before) => {
    const last = (name) => performance.getEntriesByName(name).at(-1)?.startTime ?? -1;
    return last("diptych:asked") > before && last("diptych:shown") > last("diptych:asked");
}"""


def milliseconds(page: Page, query: str) -> float:
    """Type a query and return the time from the question to the first picture."""
    box = page.get_by_role("searchbox").or_(page.get_by_role("combobox")).first
    before = page.evaluate("performance.now()")
    box.fill(query)
    page.wait_for_function(_IS_SHOWN, arg=before, timeout=60_000)
    asked, shown = page.evaluate(_LAST)
    return float(shown - asked)


def main() -> int:
    """Measure, print and return the exit code."""
    parser = speed_parser(__doc__)
    parser.add_argument("--items", type=int)
    parser.add_argument("--queries", type=int, default=20)
    options = parser.parse_args()
    items = options.items or (1_000 if options.quick else 10_000)
    report = SpeedReport(__file__, options)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        room = Path(scratch)
        folder = painted_collection(room / "page", items)
        port = free_port()
        serving = [sys.executable, "-m", "diptych", "serve", str(folder), f"--port={port}", "--rate-limit=0", "--quiet"]
        found = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        with process(serving, f"{port}/ready", room):
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{port}/")
            wanted = phrases()[:: max(1, len(phrases()) // (options.queries + 3))]
            times = [milliseconds(page, query) for query in wanted[: options.queries + 3]][3:]
        browser.close()
    report.bound(f"first picture on the page after a query at {items:,} items", times, BAR, unit="ms")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
