from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect


def test_two_retrievers_answer_side_by_side(visit: Callable) -> None:
    page = visit("/compare").page
    page.get_by_role("searchbox", name="Query").fill("a red car")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".compare-column h2")).to_have_text(["scenes", "topics"])
    lists = [page.locator(".compare-column").nth(side).locator(".tile") for side in (0, 1)]
    for tiles in lists:
        expect(tiles).to_have_count(12)
    ids = [tiles.evaluate_all("tiles => tiles.map((tile) => tile.dataset.id)") for tiles in lists]
    marked = page.locator(".compare-column").first.locator(".tile", has_text="in both")
    assert marked.evaluate_all("tiles => tiles.map((tile) => tile.dataset.id)") == [i for i in ids[0] if i in ids[1]]
    expect(page.locator(".compare-overlap")).to_have_text(f"{len(set(ids[0]) & set(ids[1]))} of 12 in both lists")
    page.locator(".compare-column").first.locator(".tile-link").first.click()
    expect(page.get_by_role("dialog").locator(".why-summary")).not_to_be_empty()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("/compare"))
    expect(page.locator(".compare-column .tile").first).to_be_visible()


def test_what_is_typed_while_the_retrievers_are_still_loading_is_asked(visit: Callable) -> None:
    page = visit().page
    held: list = []
    page.route("**/retrievers", lambda route: held.append(route))
    page.get_by_role("link", name="Compare").click()
    page.get_by_role("searchbox", name="Query").fill("a red car")
    page.get_by_role("searchbox", name="Query").press("Enter")
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    expect(page.locator(".compare-column h2")).to_have_text(["scenes", "topics"])
    expect(page.get_by_role("searchbox", name="Query")).to_have_value("a red car")
