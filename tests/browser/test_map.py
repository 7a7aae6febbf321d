from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from diptych.collection import Collection
from diptych.service.maps import make_map


@pytest.fixture(scope="module")
def mapped(scenes, serve):
    """A service whose collection has a map; the work of the job is tested with the service."""
    with Collection.open(scenes / ".diptych") as collection:
        make_map(collection)
    return serve(scenes)


def test_points_are_pointed_at_zoomed_and_opened(visit: Callable, mapped) -> None:
    page = visit("/map", at=mapped).page
    canvas = page.locator("canvas")
    entries = page.locator(".map-near a")
    expect(entries).to_have_count(8)
    inked = "(canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v)"
    page.wait_for_function(f"() => ({inked})(document.querySelector('canvas'))")
    before = entries.evaluate_all("links => links.map((link) => link.href)")
    canvas.focus()
    for key in ("+", "+", "+", "ArrowLeft", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    page.wait_for_function(
        "(before) => JSON.stringify([...document.querySelectorAll('.map-near a')].map((a) => a.href)) !== before",
        arg=str(before).replace("'", '"').replace(", ", ","),
    )
    entries.first.focus()
    expect(page.locator(".map-card")).to_be_visible()
    for place in (entries.nth(2), canvas):
        place.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog").locator(".facts")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page).to_have_url(re.compile("/map$"))
        expect(place).to_be_focused()


def test_the_mouse_drags_and_the_legend_hides(visit: Callable, mapped) -> None:
    page = visit("/map", at=mapped).page
    expect(page.locator(".map-near a").first).to_be_visible()
    page.get_by_role("checkbox", name="Texts").uncheck()
    expect(page.locator(".map-near .legend-text")).to_have_count(0)
    expect(page.locator(".map-near a")).to_have_count(8)
    first = page.locator(".map-near a").first.get_attribute("href")
    box = page.locator("canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 80, box["y"] + 120, steps=4)
    page.mouse.up()
    expect(page.locator(".map-near a").first).not_to_have_attribute("href", first or "")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_whole_map_fills_the_screen(visit: Callable) -> None:
    page = visit().page
    shares = page.evaluate(
        """async () => {
            const { Viewport } = await import("/static/js/map/viewport.js");
            const points = [{ x: 0, y: 0.4 }, { x: 1, y: 0.6 }];
            const view = new Viewport(points);
            view.resize(1000, 500);
            return points.map((point) => view.toScreen(point));
        }"""
    )
    (left, top), (right, bottom) = shares
    assert (left + right) / 2 == pytest.approx(500)
    assert (top + bottom) / 2 == pytest.approx(250)
    assert right - left == pytest.approx(900)
