from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from diptych.collection import Collection
from diptych.retriever import Retriever
from tests.browser.conftest import TOKEN


@pytest.fixture(scope="module")
def empty(scenes: Path, serve: Callable, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("empty")
    with Collection.open(scenes / ".diptych") as full:
        retriever = full.retriever_named("scenes")
        assert isinstance(retriever, Retriever)
        Collection.create(folder / ".diptych", retriever, root=folder).close()
    return serve(folder, log_clicks=False)


def test_an_empty_collection_offers_to_index(visit: Callable, empty) -> None:
    page = visit(at=empty).page
    expect(page.get_by_role("heading", name="This collection is empty")).to_be_visible()
    expect(page.get_by_role("button", name="Index the folder")).to_be_visible()


def test_a_log_that_is_off_says_so(visit: Callable, empty) -> None:
    page = visit("/log", at=empty, expected=("404",)).page
    expect(page.get_by_role("heading", name="The log is off")).to_be_visible()


def test_a_log_says_whether_it_tells_visitors_apart(visit: Callable, site: Any, scenes: Path, serve: Callable) -> None:
    page = visit("/log", at=site).page
    expect(page.locator(".page-head")).to_contain_text("time and a number that tells visitors apart, so that")
    page = visit("/log", at=serve(scenes, log_visitors=False)).page
    expect(page.locator(".page-head")).to_contain_text("with place, search model and time, so that")


def test_a_map_that_is_not_there_can_be_made(visit: Callable, empty) -> None:
    page = visit("/map", at=empty, expected=("404",)).page
    expect(page.get_by_role("button", name="Make a map")).to_be_visible()


def test_a_service_for_reading_offers_no_changes(visit: Callable, scenes: Path, serve: Callable) -> None:
    visited = visit("/?q=a+ball", at=serve(scenes, read_only=True))
    visited.open_first()
    expect(visited.page.get_by_role("button", name="Add pictures")).to_have_count(0)
    dialog = visited.page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="More like this")).to_be_visible()
    for name in ("Edit", "Remove"):
        expect(dialog.get_by_role("button", name=name, exact=True)).to_have_count(0)


def test_beyond_this_machine_the_page_asks_for_the_token(visit: Callable, scenes: Path, serve: Callable) -> None:
    page = visit(at=serve(scenes, public=True), expected=("status of 401", "401 "), signed_in=False).page
    page.get_by_label("Token").fill("a wrong one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("That is not the token of this service.")
    page.get_by_label("Token").fill("a-token-that-only-the-tests-know")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".tile").first).to_be_visible()


def test_a_visitor_reads_and_signs_in_once_by_the_address_or_by_the_token(visit: Callable, site: Any) -> None:
    visited = visit("/?q=a+ball", signed_in=False, expected=("status of 401", "401 "))
    page = visited.page
    visited.open_first()
    expect(page.get_by_role("button", name="Edit", exact=True)).to_have_count(0)
    page.keyboard.press("Escape")
    visited.go("/log")
    expect(page.get_by_text("shown on a page that is signed in")).to_be_visible()
    hint = page.get_by_text("open the address that “diptych serve” printed, or sign in")
    expect(hint).to_be_visible()
    # In a window that shows the page already; the key does not stay in the address.
    key = site.sessions.key()
    page.evaluate("key => { location.hash = `key=${key}` }", key)
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    expect(hint).to_be_hidden()
    assert page.url == f"{site.url}/log"
    page.get_by_role("button", name="Sign out").click()
    expect(hint).to_be_visible()
    visited.go(f"/#key={key}")
    expect(page.get_by_text("used before")).to_be_visible()
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Add pictures")).to_be_visible()


@pytest.mark.parametrize(("status", "title"), [(0, "No connection"), (429, "Busy"), (503, "Busy")])
def test_errors_say_what_to_do_and_can_be_tried_again(visit: Callable, status: int, title: str) -> None:
    page = visit(expected=("status of", "net::ERR", f"{status} ")).page
    page.locator(".tile").first.wait_for()
    problem = '{"type": "/problems/busy", "title": "Busy", "detail": "Wait."}'
    page.route(
        "**/search",
        lambda route: (
            route.fulfill(status=status, body=problem, content_type="application/problem+json")
            if status
            else route.abort()
        ),
    )
    page.get_by_role("combobox", name="Search").fill("a fish")
    alert = page.locator(".above").get_by_role("alert")
    expect(alert.get_by_role("heading")).to_have_text(title)
    page.unroute("**/search")
    alert.get_by_role("button", name="Try again").click()
    expect(alert).to_be_hidden()
    expect(page.locator(".tile .score").first).to_be_visible()


def test_names_from_the_collection_are_never_markup(visit: Callable, site) -> None:
    page = visit("/?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E").page
    expect(page.locator(".tile").first).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
