"""What was learned from clicks, and two retrievers on live traffic."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from diptych.collection import Collection
from diptych.collection.learning import LearningRecord
from diptych.collection.learning.retriever_training import promote
from tests.browser.axe import is_clean

PART = {
    "old": 0.412, "new": 0.468, "relative": 0.136, "low": 0.101, "p_value": 0.0004, "share": 0.93, "n_searches": 900,
    "n_queries": 58, "n_people": 610,
}  # fmt: skip
RECORD = LearningRecord(
    time="2026-03-01T10:00:00+00:00",
    action="promoted",
    before="",
    before_fingerprint="",
    after="",
    after_fingerprint="",
    reason="later searches are answered better, by more than luck",
    compared_with="scenes",
    measure="DCG",
    old=0.412,
    new=0.468,
    p_value=0.0004,
    alpha=0.0038,
    n_queries=290,
    n_held_out=58,
    n_clicks=2100.0,
    gate={
        "repeated": PART,
        "new": {**PART, "old": 0.3, "new": 0.3, "relative": 0.0, "low": 0.0, "p_value": 1.0, "share": 0.07},
        "held_out": {**PART, "n_searches": 0},
        "visual_consistency": {"z": 9.53, "p_value": 1e-20, "n_queries": 58},
        "reach": False,
        "margin": 0.01,
        "allowed": 0.0038,
    },
    gained=(("a red boat at the pier", 0.2, 0.9),),
    lost=(("a house", 0.8, 0.7),),
)


@pytest.fixture
def learned_site(own_site):
    with Collection.open(own_site.pictures / ".diptych") as collection:
        promote(collection, collection.retriever_named("topics"), RECORD)
    return own_site


def test_two_retrievers_are_compared_on_live_traffic(visit: Callable, learned_site) -> None:
    visited = visit("/log", at=learned_site, bypass_csp=True)
    page = visited.page
    card = page.locator(".card", has_text="Two search models on live searches")
    card.get_by_role("button", name="Start").click()
    expect(card).to_contain_text("0 searches since")
    visited.go("/?q=a+house")
    expect(page.locator(".tile").first).to_be_visible()
    # Numbers of two retrievers beside each other would give away who picked what.
    expect(page.locator(".tile .score")).to_have_count(0)
    with page.expect_response(re.compile("/clicks$")) as click:
        page.locator(".tile .tile-link").nth(3).click()
    assert click.value.status == 201
    visited.go("/log")
    expect(card).to_contain_text(re.compile(r"(1 : 0|0 : 1).*1 search since"))
    assert is_clean(page)
    card.get_by_role("button", name="Stop").click()
    expect(card.get_by_role("heading", name="Earlier comparisons")).to_be_visible()
    visited.go("/?q=a+house")
    expect(page.locator(".tile .score").first).to_be_visible()


@pytest.mark.parametrize(("width", "dark"), [(360, True), (1280, False)])
def test_what_was_learned_is_shown_and_rolled_back(visit: Callable, learned_site, width: int, dark: bool) -> None:
    page = visit("/log", at=learned_site, width=width, dark=dark, bypass_csp=True).page
    step = page.get_by_role("article").filter(has=page.get_by_role("heading", name="scenes → topics"))
    expect(step).to_contain_text("DCG 0.412 → 0.468 on later searches for 58 queries (p < 0.001)")
    step.get_by_text("All numbers").click()
    repeated = step.get_by_role("row", name=re.compile("Queries asked before 93"))
    expect(repeated).to_contain_text("900 searches of 610 visitors0.4120.468+13.6 %+10.1 %p < 0.001")
    expect(step.get_by_role("row", name=re.compile("New queries"))).to_contain_text("+0.0 %")
    expect(step).to_contain_text("look alike by 9.5 standard deviations beyond luck")
    step.get_by_text("Queries that changed most").click()
    gained = step.get_by_role("row", name=re.compile("a red boat at the pier 0.200"))
    expect(gained.get_by_role("img", name="First pictures of scenes").locator("img")).to_have_count(5)
    expect(gained.get_by_role("img", name="First pictures of topics").locator("img")).to_have_count(5)
    assert is_clean(page)
    page.get_by_role("button", name="Roll back to scenes").click()
    page.get_by_role("button", name="Roll back", exact=True).click()
    expect(page.get_by_role("heading", name="Back to scenes")).to_be_visible()
    expect(page.get_by_role("button", name="Roll back to scenes")).to_have_count(0)
