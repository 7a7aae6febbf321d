"""The time line and the map above the answers: there when photographs tell, pressed to filter, by mouse and by keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.axe import serious
from tests.browser.conftest import TOKEN

TAKEN = ("2010-03-04", "2010-03-09", "2012-07-01T10:00:00", "2013-12-31T23:59:59+02:00")
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
PLACES = ((38.72, -9.14, "Lisbon"), (48.85, 2.35, "Paris"), (-16.8, 179.95, "Fiji"))


@pytest.fixture(scope="module")
def dated(site) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """The shared service while six of its items know when and where they were made."""
    address = f"{site.url}/v1/collections/scenes/items"
    before = {item["id"]: item["metadata"] for item in httpx.get(address, params={"limit": 6}).json()["items"]}
    for item, taken, (latitude, longitude, place) in zip(before, cycle(TAKEN), cycle(PLACES), strict=False):
        known = {"taken": taken, "latitude": latitude, "longitude": longitude, "place": place}
        assert httpx.patch(f"{address}/{item}", json={"metadata": before[item] | known}, headers=HEADERS).is_success
    yield address
    for item, metadata in before.items():
        httpx.patch(f"{address}/{item}", json={"metadata": metadata}, headers=HEADERS)


def test_years_months_and_places_filter(visit: Callable, dated: str) -> None:
    page = visit("/").page
    bars = page.get_by_role("list", name="Years").get_by_role("button")
    expect(bars).to_have_count(4)
    page.get_by_role("button", name="2010: 4 pictures").click()
    expect(page.locator(".summary")).to_have_text("4 items left by the filters")
    months = page.get_by_role("list", name="Months of 2010").get_by_role("button")
    expect(months).to_have_count(12)
    page.get_by_role("button", name="Mar 2010: 4 pictures").press("Enter")
    expect(page.locator(".active-filters li")).to_have_text("taken=2010-03")
    page.get_by_role("button", name="All years").click()
    expect(page.locator(".active-filters li")).to_have_count(0)
    page.get_by_role("list", name="Places with most pictures").get_by_role("button", name="Lisbon").click()
    expect(page.locator(".summary")).to_have_text("2 items left by the filters")
    assert "within" in page.url
    # What is chosen keeps its alternatives, on the map as in the list.
    expect(page.locator(".world-drawing circle")).to_have_count(3)
    expect(page.locator(".world-drawing circle.chosen")).to_have_count(1)
    drawing = page.locator(".world-drawing")
    drawing.focus()
    for key in ("+", "+", "+", "+", "ArrowRight"):
        drawing.press(key)
    expect(page.get_by_role("button", name="Only what is in view")).to_be_visible()
    assert page.locator(".land").get_attribute("d").startswith("M")


def test_a_circle_is_pressed_and_the_view_is_a_filter(visit: Callable, dated: str) -> None:
    page = visit("/", width=390).page
    page.get_by_text("When and where").click()
    circle = page.locator(".world-drawing circle", has_text="Paris")
    circle.scroll_into_view_if_needed()
    box = circle.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".summary")).to_have_text("2 items left by the filters")
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Only what is in view").click()
    expect(page.locator(".active-filters li")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_axe_finds_nothing_serious(visit: Callable, dated: str, width: int, dark: bool) -> None:
    page = visit("/?f=taken%3D2010", width=width, dark=dark, bypass_csp=True).page
    page.locator(".overview").wait_for(state="attached")
    if width < 900:
        page.get_by_text("When and where").click()
    page.locator(".world-drawing circle").first.wait_for()
    assert serious(page) == []
