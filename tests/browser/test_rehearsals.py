"""Trying another search model: progress, verdict, and what was won and lost in pictures."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.axe import is_clean


def test_another_search_model_is_tried_and_shown_in_pictures(visit: Callable, own_site) -> None:
    visited = visit("/compare", at=own_site, bypass_csp=True)
    page = visited.page
    card = page.locator(".card", has_text="Try another search model")
    models = card.get_by_role("combobox", name="Search model to try")
    expect(models.locator("option")).to_have_text([re.compile(f"^{name}") for name in ("default", "strong", "topics")])
    models.select_option("topics")
    card.get_by_role("button", name="Try another search model").click()
    report = card.locator("details.rehearsal")
    expect(report).to_have_attribute("open", "", timeout=60_000)
    expect(report.locator(".verdict")).to_contain_text(re.compile(r"reciprocal rank 0\.\d\d → 0\.\d\d"))
    expect(report).to_contain_text("all 80 pictures")
    expect(report).to_contain_text("“no good match”")
    question = report.locator(".rehearsal-question").first
    expect(question.locator("h4")).to_have_text(["scenes", "topics"])
    expect(question.locator(".rehearsal-answers img")).to_have_count(12)
    assert question.locator("li.right").count() > 0
    assert is_clean(page)
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    assert is_clean(page)
    question.get_by_role("link", name=re.compile("right")).first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("/compare"))
    visited.go("/jobs")
    expect(page.locator(".job", has_text="Try another search model")).to_contain_text("reciprocal rank")
