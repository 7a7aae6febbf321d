from __future__ import annotations

import re
from collections.abc import Callable

import httpx
from playwright.sync_api import expect


def test_an_item_shows_all_that_is_known_and_closes_to_its_tile(visit: Callable) -> None:
    visited = visit("/?q=a+fish")
    page = visited.page
    visited.open_first()
    dialog = page.get_by_role("dialog")
    expect(page).to_have_url(re.compile(r"/item/.+\?q=a\+fish$"))
    expect(dialog.get_by_role("list", name="Captions").get_by_role("listitem")).to_have_count(5)
    expect(dialog.get_by_role("list", name="Labels")).to_be_visible()
    expect(dialog.locator(".metadata")).to_contain_text("colour")
    expect(dialog.locator(".strip img").first).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(dialog.locator(".detail-score")).to_contain_text("Rank 2")
    page.keyboard.press("z")
    expect(dialog.locator(".stage")).to_have_class(re.compile("zoomed"))
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page).to_have_url(re.compile(r"/\?q=a\+fish$"))
    second = page.locator(".tile").nth(1).get_attribute("data-id") or ""
    expect(page.locator(".tile:has(:focus)")).to_have_attribute("data-id", second)


def test_a_shared_link_opens_the_item_and_closes_to_the_search(visit: Callable) -> None:
    page = visit().page
    item = page.locator(".tile").first.get_attribute("data-id")
    shared = visit(f"/item/{item}").page
    expect(shared.get_by_role("dialog").locator(".captions")).to_be_visible()
    shared.get_by_role("button", name="Close (Esc)").click()
    expect(shared).to_have_url(re.compile("/$"))
    expect(shared.locator(".tile").first).to_be_visible()


def test_an_unknown_item_is_said_to_be_unknown(visit: Callable) -> None:
    page = visit("/item/nothing-of-that-name", expected=("404",)).page
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()


def test_why_tints_words_and_mirrors_classes(visit: Callable) -> None:
    visited = visit("/?q=a+red+fish")
    visited.open_first()
    why = visited.page.locator(".why")
    expect(why.locator(".why-summary")).not_to_be_empty()
    expect(why.locator(".tinted span").first).to_be_visible()
    expect(why.locator(".signed li").first).to_be_visible()
    semantic = visit("/?q=a+red+fish&by=topics")
    semantic.open_first()
    rows = semantic.page.locator(".mirror ul .mirror-row")
    expect(rows.first).to_be_visible()
    expect(rows.first.locator(".mirror-fill")).to_have_count(2)
    widths = rows.evaluate_all(
        "rows => rows.map((row) => [...row.querySelectorAll('.mirror-fill')].map((f) => f.clientWidth))"
    )
    assert max(max(pair) for pair in widths) > 20


def test_editing_saves_cancels_and_says_what_is_wrong(visit: Callable, site) -> None:
    visited = visit("/?q=a+boat", expected=("422",))
    page = visited.page
    visited.open_first()
    item = page.url.partition("/item/")[2].partition("?")[0]
    address = f"{site.url}/v1/collections/scenes/items/{item}"
    before = httpx.get(address).json()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Labels, separated by commas").fill("never saved")
    page.keyboard.press("Escape")
    expect(page.locator("form.editing")).to_be_hidden()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Labels, separated by commas").fill("boat, mine")
    page.get_by_role("button", name="Add a field").click()
    page.get_by_label("Field", exact=True).last.fill("stars")
    page.get_by_label("Value", exact=True).last.fill("4")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("list", name="Labels")).to_contain_text("mine")
    after = httpx.get(address).json()
    assert after["labels"] == ["boat", "mine"]
    assert after["metadata"] == {**before["metadata"], "stars": 4}
    assert after["captions"] == before["captions"]
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Labels, separated by commas").fill("long" * 2_000)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("form.editing .field-error")).not_to_be_empty()


def test_editing_leaves_alone_what_was_not_touched(visit: Callable, own_site) -> None:
    """Values that a text field cannot tell apart keep their kind, and labels with commas stay whole."""
    # By meaning: other labels do not change the order of the answers while they are shown.
    visited = visit("/?q=a+boat&words=similarity", at=own_site)
    page = visited.page
    item = page.locator(".tile").first.get_attribute("data-id")
    address = f"{own_site.url}/v1/collections/scenes/items/{item}"
    kept = {"labels": ["salt, pepper", "boat"], "metadata": {"code": "007", "parts": [1, {"a": 2}], "stars": 4}}
    token = {"Authorization": "Bearer a-token-that-only-the-tests-know"}
    assert httpx.patch(address, json=kept, headers=token).status_code == 200
    visited.open_first()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Captions, one on each line").fill("one\ntwo")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("list", name="Captions").get_by_role("listitem")).to_have_text(["one", "two"])
    after = httpx.get(address).json()
    assert {name: after[name] for name in kept} == kept
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("button", name="Remove this field").last.click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".metadata dt")).to_have_text(["code", "parts"])


def test_removing_asks_first(visit: Callable, own_site) -> None:
    visited = visit("/?q=a+kite", at=own_site)
    page = visited.page
    visited.open_first()
    item = page.url.partition("/item/")[2].partition("?")[0]
    address = f"{own_site.url}/v1/collections/scenes/items/{item}"
    remove = page.locator("dialog.detail").get_by_role("button", name="Remove")
    remove.click()
    page.get_by_role("button", name="Cancel").click()
    expect(remove).to_be_focused()
    assert httpx.get(address).status_code == 200
    remove.click()
    page.locator("dialog.confirm").get_by_role("button", name="Remove").click()
    expect(page.locator("dialog.detail")).to_be_hidden()
    expect(page.locator(f'.tile[data-id="{item}"]')).to_have_count(0)
    expect(page.locator(".tile-link").first).to_be_focused()
    assert httpx.get(address).status_code == 404


def test_opening_an_answer_is_logged_with_its_place(visit: Callable, site) -> None:
    page = visit("/?q=a+kite+in+the+sky").page
    with page.expect_response(lambda answer: answer.url.endswith("/clicks")) as answered:
        page.locator(".tile .tile-link").nth(2).click()
    click = answered.value.request.post_data_json
    assert answered.value.status == 201
    assert (click["position"], click["kind"]) == (3, "open")
    assert click["item"] == page.locator(".tile").nth(2).get_attribute("data-id")
    with page.expect_response(lambda answer: answer.url.endswith("/clicks")) as answered:
        page.get_by_role("dialog").get_by_role("button", name="More like this").click()
    assert answered.value.request.post_data_json["kind"] == "more_like"
    expect(page.locator(".chip.like")).to_have_count(1)
