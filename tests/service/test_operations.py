from __future__ import annotations

import asyncio
import io
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from PIL import Image
from starlette.requests import ClientDisconnect

from diptych.collection.store.sqlite import DATABASE
from diptych.service.problems import Problem
from diptych.service.security.limits import ConcurrencyLimit

Start = Callable[..., Any]


def wait_until_ready(url: str, seconds: float = 60) -> httpx.Response:
    deadline = time.monotonic() + seconds
    while True:
        answer = httpx.get(f"{url}/ready")
        if answer.status_code == 200 or time.monotonic() > deadline:
            return answer
        time.sleep(0.02)


def test_a_service_lives_and_gets_ready(running_service: Start) -> None:
    service = running_service()
    assert httpx.get(f"{service.url}/health").json() == {"status": "ok"}
    assert wait_until_ready(service.url).json() == {"ready": True, "collections": {"scenes": "ready"}}


def test_no_answer_waits_for_an_acknowledgement(running_service: Start) -> None:
    service = running_service()
    with httpx.Client(base_url=service.url) as client:
        client.get("/health")
        (protocol,) = service.server.server_state.connections
        connection = protocol.transport.get_extra_info("socket")
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_collection_that_cannot_be_searched_is_named_until_it_can(
    running_service: Start, own_scene_collection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.service.hosting._RETRY_SECONDS", 0.1)
    folder = own_scene_collection / ".diptych"
    shutil.rmtree(folder / "derived")
    database = sqlite3.connect(folder / DATABASE, isolation_level=None)
    weights = database.execute("SELECT sha256, body FROM model_file").fetchall()
    database.execute("UPDATE model_file SET body = x''")
    service = running_service()
    deadline = time.monotonic() + 60
    while (
        not (answer := httpx.get(f"{service.url}/ready"))
        .json()["collections"]["scenes"]
        .startswith("cannot be searched")
    ):
        assert answer.json()["collections"]["scenes"] == "getting ready"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert answer.status_code == 503
    assert str(own_scene_collection) not in answer.text
    database.executemany("UPDATE model_file SET body = ?2 WHERE sha256 = ?1", weights)
    database.close()
    assert wait_until_ready(service.url).status_code == 200


def number(service: Any, name: str) -> float:
    lines = httpx.get(f"{service.url}/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_metrics_count_what_happened(running_service: Start) -> None:
    service = running_service()
    wait_until_ready(service.url)
    search = f"{service.url}/v1/collections/scenes/search"
    found = httpx.get(search, params={"q": "a red car"}).json()
    httpx.get(search, params={"q": "qwertyuiop zxcvbnm"})
    click = {"search_id": found["search_id"], "item": found["answers"][0]["id"], "position": 1, "kind": "open"}
    answer = httpx.post(f"{service.url}/v1/collections/scenes/clicks", json=click, headers=service.headers)
    assert answer.status_code == 201
    assert number(service, 'diptych_searches_total{collection="scenes"}') == 2
    assert number(service, 'diptych_clicks_total{collection="scenes"}') == 1
    assert number(service, 'diptych_items{collection="scenes"}') == 60
    assert number(service, "diptych_requests_running") == 1
    route = 'route="/v1/collections/{collection}/search",status="200"'
    assert number(service, f'diptych_requests_total{{method="GET",{route}}}') == 2


def test_whatever_is_asked_the_metrics_stay_few(running_service: Start) -> None:
    service = running_service()
    with httpx.Client(base_url=service.url) as client:
        for index in range(30):
            client.request(f"METHOD{index}", f"/nothing-{index}")
            client.get(f"/v1/collections/c{index}/items")
    series = [line for line in httpx.get(f"{service.url}/metrics").text.splitlines() if "requests_total{" in line]
    assert len(series) <= 4
    assert number(service, 'diptych_requests_total{method="other"') == 30


def test_sixty_four_clients_get_through(running_service: Start) -> None:
    service = running_service()
    wait_until_ready(service.url)
    limit = service.context.search_limit

    def ask(client: int) -> list[int]:
        with httpx.Client(base_url=service.url, timeout=30) as own:
            return [own.get("/v1/collections/scenes/search", params={"q": f"car {client}"}).status_code for _ in "12"]

    with ThreadPoolExecutor(64) as pool:
        statuses = list(pool.map(ask, range(64)))
    assert statuses == [[200, 200]] * 64
    assert limit.waiting == 0


def test_only_so_many_wait_in_line_and_a_slot_is_given_back() -> None:
    async def main() -> tuple[int, list[str]]:
        limit = ConcurrencyLimit(2, max_waiting=3)
        running = most = 0
        refused = []

        async def search() -> None:
            nonlocal running, most
            try:
                async with limit.slot():
                    running += 1
                    most = max(most, running)
                    try:
                        await asyncio.sleep(0.01)
                    finally:
                        running -= 1
            except Problem as problem:
                refused.append(problem.kind)

        await asyncio.gather(*(search() for _ in range(8)))
        cancelled = [asyncio.create_task(search()) for _ in range(3)]
        await asyncio.sleep(0.001)
        for task in cancelled:
            task.cancel()
        await asyncio.gather(*cancelled, return_exceptions=True)
        await search()
        return most, refused

    most, refused = asyncio.run(main())
    assert most == 2
    # Of eight at once, two run and three wait.
    assert refused == ["busy"] * 3


def test_clients_take_turns_in_line() -> None:
    async def main() -> list[str]:
        limit, served = ConcurrencyLimit(1), list[str]()

        async def search(client: str) -> None:
            async with limit.slot(client):
                served.append(client)
                await asyncio.sleep(0)

        await asyncio.gather(*(search("crowd") for _ in range(6)), search("other"), search("third"), search("other"))
        return served

    # The first runs at once and the second was there before; then nobody waits behind the rest of the crowd.
    assert asyncio.run(main()) == ["crowd", "crowd", "other", "third", "crowd", "other", "crowd", "crowd", "crowd"]


def test_a_full_line_has_room_for_others() -> None:
    async def main() -> tuple[list[str], list[str]]:
        limit, served, refused = ConcurrencyLimit(1, max_waiting=3), list[str](), list[str]()

        async def search(client: str) -> None:
            try:
                async with limit.slot(client):
                    await asyncio.sleep(0.01)
                    served.append(client)
            except Problem as problem:
                refused.append(f"{client} {problem.kind}")

        await asyncio.gather(*(search(client) for client in ("crowd",) * 5 + ("other",)))
        async with asyncio.timeout(5), limit.slot():
            assert limit.waiting == 0
        return served, refused

    served, refused = asyncio.run(main())
    assert sorted(served) == ["crowd"] * 3 + ["other"]
    assert refused == ["crowd busy"] * 2


@contextmanager
def taken(service: Any, limit: ConcurrencyLimit) -> Iterator[None]:
    """Hold a place, as a request that takes long does."""
    loop, held = service.server.servers[0].get_loop(), AsyncExitStack()
    asyncio.run_coroutine_threadsafe(held.enter_async_context(limit.slot("somebody")), loop).result()
    yield
    asyncio.run_coroutine_threadsafe(held.aclose(), loop).result()


def sent(service: Any, path: str) -> socket.socket:
    """Send a picture, and return the connection on which the answer will come."""
    picture = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(picture, "PNG")
    request = httpx.Request("POST", service.url + path, headers=service.headers, files={"picture": picture.getvalue()})
    lines = (f"{name}: {value}\r\n" for name, value in request.headers.items())
    address = urlsplit(service.url)
    connection = socket.create_connection((str(address.hostname), address.port), timeout=60)
    connection.sendall(f"POST {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode() + request.read())
    return connection


def wait_until(is_so: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    "resource", ["uploads", "collections/scenes/search/picture", "collections/scenes/items/picture"]
)
def test_whoever_has_left_keeps_no_place_in_line(running_service: Start, resource: str) -> None:
    service = running_service()
    limit = service.context.decoding_limit = ConcurrencyLimit(1, max_waiting=2)
    with taken(service, limit):
        waiting = [sent(service, f"/v1/{resource}") for _ in "12"]
        wait_until(lambda: limit.waiting == 2)
        with sent(service, f"/v1/{resource}") as refused:
            assert refused.makefile("rb").readline().split()[1] == b"503"
        for connection in waiting:
            connection.close()
        wait_until(lambda: limit.waiting == 0)
        later = sent(service, f"/v1/{resource}")
        wait_until(lambda: limit.waiting == 1)
    with later:
        assert later.makefile("rb").readline().split()[1] in (b"200", b"201")
    assert limit.waiting == 0


def test_a_client_that_leaves_its_line_leaves_the_others_in_theirs() -> None:
    async def main() -> tuple[list[str], int]:
        limit, served, gone = ConcurrencyLimit(1), list[str](), asyncio.Event()

        async def leaves() -> dict[str, str]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def search(client: str) -> None:
            async with limit.slot(client, leaves if client == "leaver" else None):
                await asyncio.sleep(0.01)
                served.append(client)

        tasks = [asyncio.create_task(search(client)) for client in ("first", "leaver", "other", "leaver", "other")]
        await asyncio.sleep(0)
        gone.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(5), limit.slot():
            return served, sum(isinstance(outcome, ClientDisconnect) for outcome in outcomes)

    assert asyncio.run(main()) == (["first", "other", "other"], 2)
