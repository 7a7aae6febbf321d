"""One visitor is one number, which says who it is to nobody."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych.service import Client
from diptych.service.clicks import ClickLog
from diptych.service.clicks.export import text_query_searches
from diptych.service.clicks.log import SALT_DAYS, visitor_number

SEARCH, CLICKS = "/v1/collections/scenes/search", "/v1/collections/scenes/clicks"
DAY = 86_400.0


def asked(log: ClickLog, query: str = "a dog", items: str = "abc", first: int = 1, **facts: Any) -> str:
    usual = {"retriever": "r", "fingerprint": "f", "target": "images", "no_good_match": False, "best_probability": 0.5}
    shown = [(item, first + place) for place, item in enumerate(items)]
    search_id = log.record_search(query=query, shown=shown, **{**usual, **facts})
    assert search_id is not None
    return search_id


def stored_visitors(path: Path) -> list[bytes | None]:
    with closing(sqlite3.connect(path)) as connection:
        return [visitor for (visitor,) in connection.execute("SELECT visitor FROM searches ORDER BY number")]


def test_a_number_lasts_as_long_as_its_salt(tmp_path: Path) -> None:
    ann, bob = (visitor_number(tmp_path, name, 0.0) for name in ("ann", "bob"))
    assert ann != bob
    assert ann == visitor_number(tmp_path, "ann", SALT_DAYS * DAY - 1)
    (salt,) = tmp_path.iterdir()
    assert stat.S_IMODE(salt.stat().st_mode) == 0o600
    old = salt.read_bytes()
    assert visitor_number(tmp_path, "ann", SALT_DAYS * DAY) not in (ann, bob)
    (new,) = tmp_path.iterdir()
    assert new.read_bytes() != old
    (tmp_path / "elsewhere").mkdir()
    assert visitor_number(tmp_path / "elsewhere", "ann", 0.0) != ann


def test_threads_that_begin_a_period_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for period in range(20):
            moment = period * SALT_DAYS * DAY
            found = pool.map(lambda _, moment=moment: visitor_number(tmp_path, "ann", moment), range(8))
            assert len(set(found)) == 1


def test_where_no_salt_can_be_kept_nobody_is_known(tmp_path: Path) -> None:
    assert visitor_number(tmp_path / "missing", "ann", 0.0) is None


def test_the_file_holds_numbers_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ClickLog(path) as log:
        first = asked(log, visitor="ann@example.org")
        asked(log, items="def", first=4, continues=first, visitor="bob")
        asked(log, "a cat", visitor="ann@example.org")
        asked(log, "a cat")
        stream = io.BytesIO()
        log.record_click(search_id=first, item="a", position=1, kind="open")
        log.export(stream, "events", "jsonl")
    ann, again, nobody = stored_visitors(path)
    assert ann == again is not None
    assert nobody is None
    assert json.loads(stream.getvalue())["visitor"] == ann.hex()
    assert b"example.org" not in path.read_bytes()
    assert {row[0]: row[1] for row in text_query_searches(path)} == {1: ann.hex(), 2: ann.hex(), 3: None}


def test_a_click_tells_who_searched_but_changes_nobody(tmp_path: Path) -> None:
    with ClickLog(tmp_path / "c.sqlite") as log:
        own = asked(log, visitor="ann")
        for search in (asked(log), own):
            log.record_click(search_id=search, item="a", position=1, kind="open", visitor="bob")
    ann, bob = stored_visitors(tmp_path / "c.sqlite")
    now = ClickLog(tmp_path / "c.sqlite")._clock()
    assert [ann, bob] == [visitor_number(tmp_path, name, now) for name in ("ann", "bob")]


def test_forgetting_everything_forgets_the_salt(tmp_path: Path) -> None:
    with ClickLog(tmp_path / "c.sqlite") as log:
        asked(log, visitor="ann")
        log.forget(before=0.0)
        assert list(tmp_path.glob("*.salt"))
        log.forget()
        assert not list(tmp_path.glob("*.salt"))


def test_searches_to_learn_from_are_all_that_was_shown_and_clicked(tmp_path: Path) -> None:
    rng = random.Random(0)
    path, moment = tmp_path / "c.sqlite", [0.0]
    expected = []
    with ClickLog(path, clock=lambda: moment[0]) as log:
        for number in range(1, 60):
            # Clocks are set back now and then.
            moment[0] = 1e9 + rng.randrange(1000)
            query, visitor = rng.choice(["a dog", "a cat"]), rng.choice(["ann", "bob", None])
            items = rng.sample("abcdefghij", 10)
            kind = rng.choice(["images", "images", "images", "texts"])
            search = asked(log, query, "".join(items[:4]), visitor=visitor, target=kind)
            further = rng.random() < 0.4
            if further:
                moment[0] += 5000
                asked(log, query, "".join(items[4:]), first=5, continues=search, target=kind)
                moment[0] -= 5000
            places = rng.sample(range(1, 11 if further else 5), rng.randrange(4))
            for place in places:
                for _ in range(rng.randrange(1, 3)):
                    log.record_click(search_id=search, item=items[place - 1], position=place, kind="open")
            unwanted = items[0]
            log.record_click(search_id=search, item=unwanted, position=1, kind="less_like")
            named = None if visitor is None else visitor_number(tmp_path, visitor, moment[0]).hex()
            if kind == "images":
                start = (number, named, moment[0], query)
                expected.append((*start, 1, tuple(items[:4]), frozenset(place for place in places if place <= 4)))
                if further:
                    clicked = frozenset(place for place in places if place > 4)
                    expected.append((*start, 5, tuple(items[4:]), clicked))
        asked(log, "item:7")
    found = list(text_query_searches(path))
    assert found == sorted(expected, key=lambda row: (row[2], row[0], row[4]))


@pytest.fixture
def service(running_service: Callable[..., Any]) -> Any:
    return running_service()


def logged(service: Any) -> list[bytes | None]:
    log = service.context.click_logs["scenes"]
    log.flush()
    return stored_visitors(log.path)


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
    events = httpx.get(f"{service.url}{CLICKS}?events=true&format=jsonl", headers=service.headers).json()
    assert events["visitor"] == page.hex()


def test_visitors_can_be_left_out_of_the_log(running_service: Callable[..., Any]) -> None:
    service = running_service(log_visitors=False)
    with Client(service.url, service.token, "scenes") as client:
        client.search("a red circle", visitor="ann")
    assert logged(service) == [None]
    told = httpx.get(f"{service.url}/v1/collections/scenes", headers=service.headers).json()
    assert (told["log_clicks"], told["log_visitors"]) == (True, False)
    assert not list(service.context.click_logs["scenes"].path.parent.glob("*.salt"))


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
