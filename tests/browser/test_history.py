"""Training on the page: refused or taken, with its numbers, and the way back."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from diptych.collection import Collection
from diptych.collection.learning import Training, training_pairs
from tests.browser.axe import is_clean


def test_training_is_refused_for_luck_or_taken_and_taken_back(visit: Callable, own_site) -> None:
    with Collection.open(own_site.pictures / ".diptych") as collection:
        pairs = training_pairs(collection, lambda _: None)
        refused = Training(collection, method="random", parameters={}).run(pairs)
        assert not refused.is_taken
        taken = Training(collection, method="cca", parameters={"n_components": 8}).run(pairs, force=True)
        assert taken.is_taken
    visited = visit("/compare", at=own_site, bypass_csp=True)
    page = visited.page
    card = page.locator(".card", has_text="Search models and their history")
    steps = card.get_by_role("article")
    expect(steps.nth(0)).to_contain_text("scenes → trained cca")
    expect(steps.nth(1)).to_contain_text("scenes stays")
    expect(steps.nth(1)).to_contain_text("It is not better on held-out pictures.")
    expect(steps.nth(1)).to_contain_text(re.compile(r"MAP 0\.\d{3} → 0\.\d{3} on 80 held-out pictures"))
    steps.nth(1).get_by_text("All numbers").click()
    expect(steps.nth(1).get_by_role("row", name=re.compile("42 other photographs"))).to_be_visible()
    assert is_clean(page)
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    assert is_clean(page)
    card.get_by_role("button", name="Go back to scenes").click()
    page.get_by_role("button", name="Go back", exact=True).click()
    expect(steps.nth(0)).to_contain_text("Back to scenes")
    models = card.get_by_role("list", name="Stored search models").get_by_role("listitem")
    expect(models.first).to_contain_text("scenes")
    card.get_by_role("button", name="Remove trained cca").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(models).to_have_count(2)
    expect(card.get_by_role("button", name=re.compile("Go back to"))).to_have_count(0)
