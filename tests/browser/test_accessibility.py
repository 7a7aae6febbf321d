"""axe-core on every view, wide and narrow, light and dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.axe import ABOUT_COLOURS, serious

# With few answers: what is judged of one tile is judged of the others, and takes as long for each of them.
FISH = "/?q=a+fish&f=label%3Afish"
VIEWS = {
    "search": (FISH, ".tile .score"),
    "texts": (f"{FISH}&in=texts", ".as-texts .score"),
    "compare": ("/compare?q=a+fish", ".compare-column .score"),
    "map": ("/map", ".map-near a, .notice"),
    "log": ("/log", ".card, .notice"),
    "jobs": ("/jobs", ".job-start"),
}


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_no_view_has_a_serious_violation(visit: Callable, width: int, dark: bool) -> None:
    """Each view is judged by every rule at both widths, and by those about colours in light and in dark at both."""
    visited = visit("/", width=width, dark=dark, bypass_csp=True, expected=("404",))
    page = visited.page
    for name, (path, ready) in VIEWS.items():
        visited.go(path)
        page.locator(ready).first.wait_for()
        assert serious(page) == [], name
        assert "retriever" not in page.locator("body").inner_text().lower(), name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the screen"
        page.emulate_media(color_scheme="light" if dark else "dark")
        assert serious(page, runOnly=ABOUT_COLOURS) == [], f"{name}, {'light' if dark else 'dark'}"
        page.emulate_media(color_scheme="dark" if dark else "light")


@pytest.mark.parametrize("dark", [False, True])
def test_the_detail_view_has_no_serious_violation(visit: Callable, dark: bool) -> None:
    visited = visit(FISH, dark=dark, width=360 if dark else 1280, bypass_csp=True)
    visited.open_first()
    expect(visited.page.locator(".why-summary")).not_to_be_empty()
    assert serious(visited.page) == []
    visited.page.get_by_role("button", name="Edit", exact=True).click()
    assert serious(visited.page) == []


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_kept_and_shared_has_no_serious_violation(visit: Callable, dark: bool) -> None:
    page = visit(FISH, dark=dark, width=360 if dark else 1280, bypass_csp=True).page
    page.locator(".tile .score").first.wait_for()
    share = page.get_by_role("button", name="Share")
    share.click()
    assert serious(page) == []
    page.get_by_role("button", name="Add results to album …").click()
    page.get_by_role("button", name="Done").wait_for()
    assert serious(page) == []


def test_colours_follow_the_system_or_the_switch(visit: Callable) -> None:
    page = visit(dark=True).page
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.get_by_role("button", name="Colours: as the system").click()
    expect(page.get_by_role("button", name="Colours: light")).to_be_visible()
    light = page.evaluate(paper)
    assert light != dark
    page.reload()
    expect(page.get_by_role("button", name="Colours: light")).to_be_visible()
    assert page.evaluate(paper) == light


def test_a_small_screen_has_its_filters_in_a_drawer(visit: Callable) -> None:
    page = visit("/?q=a+ball", width=360, height=700, has_touch=True).page
    expect(page.locator("#facets")).to_be_hidden()
    page.get_by_role("button", name="Filters", exact=True).tap()
    expect(page.locator("#facets")).to_be_visible()
    page.locator("#facets .facet-value").first.tap()
    expect(page.locator(".active-filters li")).to_have_count(1)
    page.get_by_role("button", name="Close the filters").tap()
    expect(page.locator("#facets")).to_be_hidden()
    page.locator(".tile").nth(1).wait_for()
    columns = page.locator(".tile").evaluate_all(
        "tiles => new Set(tiles.map((t) => t.getBoundingClientRect().left)).size"
    )
    assert columns == 2
