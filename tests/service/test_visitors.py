"""One visitor is one number, which says who it is to nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from diptych.service import Client

SEARCH, CLICKS = "/v1/collections/scenes/search", "/v1/collections/scenes/clicks"


def logged(service: Any) -> list[str | None]:
    log = service.context.click_logs["scenes"]
    log.flush()
    with log.store.reading() as db:
        return [visitor for (visitor,) in db.rows("SELECT visitor FROM search ORDER BY id")]


def test_a_session_is_a_visitor_and_a_stranger_is_none(service: Any) -> None:
    queries = [{"query": query} for query in ("a red circle", "a blue square")]
    for _ in range(2):
        with httpx.Client(base_url=service.url) as browser:
            browser.post("/v1/session", json={"token": service.token})
            for query in queries:
                assert browser.post(SEARCH, json=query).is_success
            browser.get("/v1/session")
            browser.get(SEARCH, params={"q": "a green triangle"})
    httpx.post(service.url + SEARCH, json=queries[0])
    one, two, nobody = (set(logged(service)[place]) for place in (slice(0, 3), slice(3, 6), slice(6, 7)))
    assert len(one) == len(two) == 1
    assert one != two
    assert (one | two).isdisjoint(nobody)
    assert nobody == {None}


def test_a_program_with_the_token_names_visitors_and_others_do_not(service: Any) -> None:
    with Client(service.url, service.token, "scenes") as client:
        for visitor in ("Zoë", "Zoë", "bob", None):
            client.search("a red circle", visitor=visitor)
    named = {"X-Diptych-Visitor": "bob"}
    httpx.post(service.url + SEARCH, json={"query": "a red circle"}, headers=named)
    with httpx.Client(base_url=service.url, headers=named) as browser:
        browser.post("/v1/session", json={"token": service.token})
        browser.post(SEARCH, json={"query": "a red circle"})
        found = browser.post(SEARCH, json={"query": "a red circle"}, headers={"X-Diptych-Visitor": "carl"}).json()
    zoe, again, bob, none, stranger, page, carl = logged(service)
    assert zoe == again
    assert None not in (zoe, bob, page)
    assert len({zoe, bob, page}) == 3
    assert none is stranger is None
    assert page == carl, "a page has no other visitors than its own"
    click = {"search_id": found["search_id"], "item": found["answers"][0]["id"], "position": 1}
    assert httpx.post(service.url + CLICKS, json=click, headers=service.headers).status_code == 201
    events = httpx.get(f"{service.url}{CLICKS}?what=events&format=jsonl", headers=service.headers).json()
    assert events["visitor"] == page


def test_visitors_can_be_left_out_of_the_log(running_service: Callable[..., Any]) -> None:
    service = running_service(log_visitors=False)
    with Client(service.url, service.token, "scenes") as client:
        client.search("a red circle", visitor="ann")
    assert logged(service) == [None]
    told = httpx.get(f"{service.url}/v1/collections/scenes", headers=service.headers).json()
    assert (told["log_clicks"], told["log_visitors"]) == (True, False)
    with service.context.click_logs["scenes"].store.reading() as db:
        assert db.value("SELECT count(*) FROM visitor_salt") == 0


def test_of_one_visitor_only_so_much_a_minute_is_logged(running_service: Callable[..., Any]) -> None:
    service = running_service(limits={"logged_per_minute": 3})
    with Client(service.url, service.token, "scenes") as client:
        found = [client.search("a red circle", visitor="ann") for _ in range(5)]
        assert all(page.answers for page in found)
        assert [page.search_id is None for page in found] == [False, False, False, True, True]
        assert client.search("a red circle", visitor="bob").search_id is not None
        assert all(client.search("a red circle").search_id is not None for _ in range(5))
    first = found[0]
    click = {"search_id": first.search_id, "item": first.answers[0].id, "position": 1}
    named = {**service.headers, "X-Diptych-Visitor": "ann"}
    answers = [httpx.post(service.url + CLICKS, json=click, headers=named) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
    assert answers[-1].json()["type"] == "/problems/too-many-clicks"
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 20
    assert httpx.post(service.url + CLICKS, json=click, headers=service.headers).status_code == 201
