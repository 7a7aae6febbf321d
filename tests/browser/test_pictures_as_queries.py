from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

# A file that a person drags or pastes, made inside the page from the bytes of a stored picture.
HAND_OVER = """async ([kind, address, name = "mine.png", type = "image/png"]) => {
  const bytes = await (await fetch(address)).blob();
  const data = new DataTransfer();
  data.items.add(new File([bytes], name, { type }));
  const target = document.querySelector("main");
  if (kind === "paste") target.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
  else for (const name of ["dragover", "drop"]) {
    target.dispatchEvent(new DragEvent(name, { dataTransfer: data, bubbles: true, cancelable: true }));
  }
}"""


def first_original(page: Page) -> tuple[str, str]:
    item = page.locator(".tile").first.get_attribute("data-id")
    assert item is not None
    return item, f"/v1/collections/scenes/items/{item}/original"


def expect_found(page: Page, item: str) -> None:
    """A picture that is in the collection is its own best answer."""
    expect(page.locator(".chip.like")).to_have_count(1)
    expect(page.locator(".summary")).to_have_text(re.compile("searched in"))
    expect(page.locator(".tile").first).to_have_attribute("data-id", item)
    expect(page).to_have_url(re.compile("like=upload"))


def test_a_chosen_file_is_searched_alone_and_with_words(visit: Callable, scenes: Path) -> None:
    page = visit().page
    item = page.locator(".tile").nth(4).get_attribute("data-id")
    assert item is not None
    name = page.evaluate("async (id) => (await (await fetch(`/v1/collections/scenes/items/${id}`)).json()).name", item)
    page.locator(".ask input[type=file]").set_input_files(scenes / name)
    expect_found(page, item)
    page.reload()
    expect_found(page, item)
    with page.expect_request(lambda request: request.method == "POST" and "snow" in (request.post_data or "")) as asked:
        page.get_by_role("combobox", name="Search").fill("2:a house - snow")
    terms = asked.value.post_data_json["terms"]
    assert [(term.get("text"), term["weight"]) for term in terms] == [("a house", 2), ("snow", -1), (None, 1)]
    page.get_by_role("button", name=re.compile("Remove your picture")).click()
    expect(page.locator(".chip")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("like="))


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_a_picture_can_be_dropped_or_pasted(visit: Callable, kind: str) -> None:
    page = visit().page
    item, address = first_original(page)
    page.evaluate(HAND_OVER, [kind, address])
    expect_found(page, item)
    expect(page.locator(".drop-veil")).to_be_hidden()


def test_what_is_no_picture_is_refused_in_words(visit: Callable, tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture at all")
    page = visit(expected=("status of 4", "/v1/uploads")).page
    page.locator(".ask input[type=file]").set_input_files(broken)
    expect(page.get_by_role("alert")).to_be_visible()
    page.locator(".ask input[type=file]").set_input_files(Path(__file__))
    expect(page.get_by_role("alert").filter(has_text=f"“{Path(__file__).name}”: no picture")).to_be_visible()
    page.evaluate(HAND_OVER, ["drop", "/health", "notes.txt", "text/plain"])
    expect(page.get_by_role("alert").filter(has_text="“notes.txt”: no picture")).to_be_visible()
    expect(page.locator(".chip")).to_have_count(0)


def test_pictures_are_added_with_captions_and_labels(visit: Callable, own_site, tmp_path: Path) -> None:
    from PIL import Image

    names = ["red.png", "broken.png", "notes.txt"]
    Image.new("RGB", (40, 30), "red").save(tmp_path / names[0])
    for name in names[1:]:
        (tmp_path / name).write_bytes(b"no picture at all")
    page = visit(at=own_site, expected=("status of 4", "/items")).page
    page.get_by_role("button", name="Add pictures").click()
    dialog = page.get_by_role("dialog", name="Add pictures")
    dialog.locator("#add-files").set_input_files([tmp_path / name for name in names])
    expect(dialog.get_by_role("alert").first).to_contain_text("“notes.txt”: no picture")
    dialog.get_by_label("Captions of red.png").fill("a plain red wall\nnothing but red")
    dialog.get_by_label("Labels for all").fill("wall, red")
    dialog.get_by_role("button", name="Add 2 pictures").click()
    # What the service refuses stays, with the reason; the other is in the collection.
    refused = dialog.locator(".adding li")
    expect(refused).to_have_count(1)
    expect(refused.get_by_role("alert")).not_to_be_empty()
    on_the_area = HAND_OVER.replace('querySelector("main")', 'querySelector(".drop-area")')
    page.evaluate(on_the_area, ["drop", "/static/icon.svg"])
    expect(refused).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Add pictures")).to_be_focused()
    expect(page.locator(".summary")).to_have_text("81 items")
    expect(page.locator(".chip")).to_have_count(0)
    page.goto(f"{own_site.url}/?f=label%3Dwall")
    page.locator(".tile-link").first.click()
    expect(page.get_by_role("list", name="Captions").get_by_role("listitem")).to_have_text(
        ["a plain red wall", "nothing but red"]
    )
    expect(page.get_by_role("list", name="Labels").get_by_role("listitem")).to_have_text(["wall", "red"])


def test_a_click_on_answers_that_are_about_to_go_counts_for_their_search(visit: Callable) -> None:
    page = visit("/?q=a+house").page
    expect(page.locator(".tile").first).to_be_visible()

    held: list[Route] = []
    page.route(
        "**/search", lambda route: held.append(route) if "boat" in route.request.post_data else route.continue_()
    )
    page.get_by_role("combobox").first.fill("a boat on the sea")
    expect(page.locator('[aria-busy="true"]').first).to_be_attached()
    with page.expect_response("**/clicks") as clicked:
        page.locator(".tile-link").first.click()
    assert clicked.value.status < 300
    for route in held:
        route.continue_()


def test_more_and_less_like_this_become_chips_that_turn(visit: Callable) -> None:
    page = visit("/?q=a+house").page
    first, second = page.locator(".tile").nth(0), page.locator(".tile").nth(1)
    liked, unliked = first.get_attribute("data-id"), second.get_attribute("data-id")
    first.hover()
    first.get_by_role("button", name="More like this").click()
    expect(page).to_have_url(re.compile(f"like=item%3A{liked}"))
    other = page.locator(f'.tile[data-id="{unliked}"]').first
    other.hover()
    with page.expect_request(lambda request: request.url.endswith("/search") and unliked in request.post_data) as asked:
        other.get_by_role("button", name="Less like this").click()
    # What is unlike counts for less than the words, which it must not undo.
    assert [term["weight"] for term in asked.value.post_data_json["terms"]] == [1, 1, -0.3]
    expect(page.locator(".chip")).to_have_count(2)
    expect(page.locator(".chip.unlike")).to_have_count(1)
    expect(page).to_have_url(re.compile(f"unlike=item%3A{unliked}"))
    page.locator(".chip.unlike .chip-turn").click()
    expect(page.locator(".chip.like")).to_have_count(2)
    page.go_back()
    expect(page.locator(".chip.unlike")).to_have_count(1)
    page.get_by_role("button", name="Clear the search").click()
    expect(page).to_have_url(re.compile("/$"))
