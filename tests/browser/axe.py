"""axe-core in a page that a test visits."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

# What axe-core judges by default that depends on colours.
ABOUT_COLOURS = ["color-contrast", "link-in-text-block"]


def serious(page: Page, **options: Any) -> list[str]:
    """Return the serious violations; a page reads the half megabyte of axe-core once, and hands over only those."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    running = "(options) => axe.run(options).then((results) => results.violations)"
    found = page.evaluate(running, {"resultTypes": ["violations"], **options})
    return [
        f"{violation['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def is_clean(page: Page) -> bool:
    """Whether nothing serious is wrong, and nothing wider than the screen."""
    return not serious(page) and bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
