from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect


def test_the_log_tells_what_was_asked_and_forgets(visit: Callable, own_site) -> None:
    page = visit("/log", at=own_site).page
    expect(page.get_by_role("heading", name="No searches yet")).to_be_visible()
    page.get_by_role("link", name="Start searching").click()
    box = page.get_by_role("combobox", name="Search")
    box.fill("a hou")
    with page.expect_response(lambda answer: '"log":true' in (answer.request.post_data or "")):
        box.fill("a house")
        expect(page).to_have_url(re.compile(r"a\+house$"))
        box.press("Enter")
    page.locator(".tile .tile-link").first.click()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Log").click()
    rows = page.get_by_role("row", name=re.compile("a house"))
    expect(rows.first).to_be_visible()
    expect(rows.first.locator("mark")).to_have_text("house")
    # What was only half typed is not remembered.
    assert page.get_by_role("link", name="a hou", exact=True).count() == 0
    expect(page.locator(".columns svg").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export clicks as CSV").click()
    assert "a house" in Path(download.value.path()).read_text()
    rows.first.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/\?q=a\+house"))
    page.go_back()
    page.get_by_role("button", name="Delete log").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", name="No searches yet")).to_be_visible()


def test_an_index_job_reads_a_new_picture_in(visit: Callable, own_site) -> None:
    from PIL import Image

    Image.new("RGB", (40, 30), "red").save(own_site.pictures / "new.png")
    page = visit("/jobs", at=own_site, expected=("net::ERR",)).page
    # Where the stream of news breaks, the page asks for them.
    page.route("**/events", lambda route: route.abort())
    expect(page.get_by_text("No job has run yet.")).to_be_visible()
    page.get_by_role("button", name="Start: Index the folder").click()
    done = page.locator(".job.done", has_text="Index the folder")
    expect(done).to_contain_text("1 added", timeout=60_000)
    page.get_by_role("link", name="Search").click()
    expect(page.locator(".summary")).to_have_text("81 items")


def test_a_map_is_made_and_adding_a_search_model_is_cancelled(visit: Callable, own_site) -> None:
    visited = visit("/map", at=own_site, expected=("404",))
    page = visited.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    page.get_by_role("button", name="Make a map").click()
    expect(page.locator(".map-near a")).to_have_count(8, timeout=60_000)
    visited.go("/compare")
    page.locator("#add-retriever").select_option("default")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("progressbar", name="Add a search model")).to_be_visible()
    cancel = page.get_by_role("button", name="Cancel")
    cancel.focus()
    # News of the job come and go without taking the focus along.
    expect(page.locator(".job-news")).to_contain_text("search model default")
    expect(cancel).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#add-retriever")).to_be_visible()
    visited.go("/jobs")
    expect(page.locator(".job h3")).to_have_text(["Add a search model", "Make a map"])
    expect(page.locator(".job.cancelled")).to_contain_text("Cancelled; what was done is kept.")
    # Each job was followed as the service told of it; nobody asked again and again.
    assert len([each for each in asked if each.endswith("/events")]) == 2
    assert not [each for each in asked if re.fullmatch("GET .*/jobs/[0-9a-f]+", each)]
