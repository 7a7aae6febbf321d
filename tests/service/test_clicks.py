from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych.collection import Collection
from diptych.errors import NoRoomError
from diptych.service.clicks import ClickLog

SCENES = "/v1/collections/scenes"


def asked(service: Any, query: str = "a red circle", **options: Any) -> dict[str, Any]:
    answer = httpx.post(f"{service.url}{SCENES}/search", json={"query": query, "limit": 5, **options})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def clicked(service: Any, found: dict[str, Any], place: int, **changes: Any) -> httpx.Response:
    answer = found["answers"][place]
    click = {"search_id": found["search_id"], "item": answer["id"], "position": answer["rank"], "kind": "open"}
    return httpx.post(f"{service.url}{SCENES}/clicks", json={**click, **changes}, headers=service.headers)


def test_from_search_to_click_to_triads(running_service: Callable[..., Any]) -> None:
    service = running_service()
    first = asked(service, "A red  circle")
    second = asked(service, "a red circle", offset=5, search_id=first["search_id"])
    assert second["search_id"] == first["search_id"]
    again = asked(service)
    wanted = first["answers"][1]["id"]
    assert clicked(service, first, 1).json() == {"id": 1}
    assert clicked(service, second, 0, kind="original").status_code == 201
    assert clicked(service, again, 1).status_code == 201
    assert clicked(service, again, 2, kind="less_like").status_code == 201

    table = httpx.get(f"{service.url}{SCENES}/clicks", headers=service.headers)
    assert table.headers["content-type"].startswith("text/csv")
    assert "attachment" in table.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert {(row["query"], row["item"], row["clicks"]) for row in rows} == {
        ("a red circle", wanted, "2"),
        ("a red circle", second["answers"][0]["id"], "1"),
    }
    events = httpx.get(
        f"{service.url}{SCENES}/clicks", params={"what": "events", "format": "jsonl"}, headers=service.headers
    )
    lines = [json.loads(line) for line in events.text.splitlines()]
    assert [(line["position"], line["kind"], line["shown"]) for line in lines] == [
        (2, "open", 2),
        (6, "original", 1),
        (2, "open", 2),
        (3, "less_like", 2),
    ]
    assert {line["retriever"] for line in lines} == {first["retriever"]["name"]}


@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("what", ["triads", "events", "impressions"])
def test_an_empty_log_exports_an_empty_table(shared_service: Callable[..., Any], format: str, what: str) -> None:
    service = shared_service()
    answer = httpx.get(
        f"{service.url}{SCENES}/clicks", params={"format": format, "what": what}, headers=service.headers
    )
    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_texts_and_pictures_are_logged_with_their_target(running_service: Callable[..., Any]) -> None:
    service = running_service()
    texts = asked(service, target="texts")
    answer = texts["answers"][0]
    assert clicked(service, texts, 0, caption_id=answer["caption_id"]).status_code == 201
    similar = asked(service, f"item:{answer['id']}")
    assert clicked(service, similar, 0).status_code == 201
    lines = httpx.get(
        f"{service.url}{SCENES}/clicks?what=events&format=jsonl", headers=service.headers
    ).text.splitlines()
    events = [json.loads(line) for line in lines]
    assert [(event["target"], event["caption_id"]) for event in events] == [
        ("texts", answer["caption_id"]),
        ("images", None),
    ]
    triads = httpx.get(f"{service.url}{SCENES}/clicks?format=jsonl", headers=service.headers).text.splitlines()
    assert len(triads) == 1, "a search with an item says nothing of words"


def test_wrong_clicks_are_refused(running_service: Callable[..., Any]) -> None:
    service = running_service()
    found = asked(service)
    for changes, status, kind in (
        ({"position": 2}, 422, "invalid-input"),
        ({"item": "nothing"}, 422, "invalid-input"),
        ({"item": "\x00"}, 422, "invalid-input"),
        ({"search_id": "00" * 16}, 404, "no-such-search"),
        ({"search_id": "../../etc"}, 404, "no-such-search"),
        ({"position": 0}, 422, "invalid-request"),
        ({"kind": "stare"}, 422, "invalid-request"),
        ({"more": 1}, 422, "invalid-request"),
    ):
        answer = clicked(service, found, 0, **changes)
        assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{kind}"), changes
        assert answer.headers["content-type"].startswith("application/problem+json")
    unknown = httpx.get(f"{service.url}{SCENES}/clicks?what=both", headers=service.headers)
    assert unknown.status_code == 422
    for days in ("0", "-1", "x", "99999999"):
        log = f"{service.url}{SCENES}/query-log?days={days}"
        assert httpx.get(log, headers=service.headers).status_code == 422


def test_forgetting(running_service: Callable[..., Any]) -> None:
    service = running_service()
    found = asked(service)
    assert clicked(service, found, 0).status_code == 201
    assert httpx.delete(f"{service.url}{SCENES}/clicks", headers=service.headers).status_code == 204
    assert httpx.get(f"{service.url}{SCENES}/clicks?format=jsonl", headers=service.headers).text == ""
    assert clicked(service, found, 0).status_code == 404


def test_a_service_that_only_reads_still_learns_from_clicks(running_service: Callable[..., Any]) -> None:
    service = running_service(read_only=True)
    assert clicked(service, asked(service), 0).status_code == 201
    assert httpx.get(f"{service.url}{SCENES}/clicks", headers=service.headers).status_code == 200
    assert httpx.delete(f"{service.url}{SCENES}/clicks", headers=service.headers).status_code == 403


def test_one_flag_switches_the_log_off(running_service: Callable[..., Any]) -> None:
    service = running_service(log_clicks=False)
    found = asked(service)
    assert found["search_id"] is None
    answer = clicked(service, found, 0, search_id="00" * 16)
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/click-log-off")
    with service.context.hosted["scenes"].collection.store.reading() as db:
        assert db.value("SELECT count(*) FROM search") == 0
    report = httpx.get(f"{service.url}{SCENES}/query-log", headers=service.headers).json()
    assert (report["log"], report["searches"]) == (False, 0)


def test_a_search_that_asks_for_it_is_not_logged(running_service: Callable[..., Any]) -> None:
    service = running_service()
    assert asked(service, log=False)["search_id"] is None
    assert service.context.click_logs["scenes"].counts().searches == 0


def test_a_full_disk_is_a_problem_of_the_click_and_not_of_the_search(
    running_service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise NoRoomError(Path("/secret/place"), 1)

    service = running_service()
    log = service.context.click_logs["scenes"]
    with monkeypatch.context() as patch:
        patch.setattr(log.store, "write", refuse)
        answer = clicked(service, asked(service), 0)
        assert (answer.status_code, answer.json()["type"]) == (507, "/problems/no-room")
        assert "secret" not in answer.text
    log.flush()
    assert log.counts().searches == 1


def test_stopping_the_service_loses_no_click(running_service: Callable[..., Any]) -> None:
    service = running_service()

    def person(number: int) -> int:
        acknowledged = 0
        try:
            for turn in range(200):
                search = {"query": f"query {number} {turn}", "limit": 5}
                found = httpx.post(f"{service.url}{SCENES}/search", json=search)
                # Whoever has asked when it stops is told to ask again.
                if found.status_code == 503:
                    break
                acknowledged += clicked(service, found.json(), 0).status_code == 201
        except httpx.TransportError:
            pass
        return acknowledged

    with ThreadPoolExecutor(4) as pool:
        people = [pool.submit(person, number) for number in range(4)]
        while service.context.click_logs["scenes"].counts().clicks < 10:
            pass
        folder = service.context.hosted["scenes"].collection.folder
        service.stop()
        acknowledged = sum(person.result() for person in people)
    with Collection.open(folder) as collection, ClickLog(collection.store) as log:
        assert log.counts().clicks >= acknowledged >= 10
