from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.service.security.guards import CONTENT_SECURITY_POLICY, host_name
from diptych.service.security.limits import TokenBuckets
from diptych.service.security.tokens import KEY_SECONDS, LONGEST_SESSION_SECONDS, SESSION_SECONDS, PageSessions

Start = Callable[..., Any]
ITEMS = "/v1/collections/scenes/items"
NEW_TEXT = {"captions": ["a red kite over the dunes"]}


@pytest.fixture
def page(shared_service: Start) -> Iterator[tuple[Any, httpx.Client]]:
    """A service, and a browser's page that has begun its session."""
    service = shared_service()
    with httpx.Client(base_url=service.url) as client:
        document = client.post("/v1/session", json={"token": service.token}).json()
        own = {"Sec-Fetch-Site": "same-origin", "Origin": service.url}
        client.headers.update({"X-Diptych-CSRF": document["csrf"], **own})
        yield service, client


def kind(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["status"] == answer.status_code
    return str(document["type"]).removeprefix("/problems/")


def test_on_this_machine_everyone_reads_and_nobody_writes(shared_service: Start) -> None:
    service = shared_service()
    assert httpx.get(service.url + ITEMS).status_code == 200
    answer = httpx.post(service.url + ITEMS, json=NEW_TEXT)
    assert (answer.status_code, kind(answer)) == (401, "token-needed")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert httpx.post(service.url + ITEMS, json=NEW_TEXT, headers=service.headers).status_code == 201


def test_whoever_only_asks_for_a_session_gets_none(shared_service: Start) -> None:
    service = shared_service()
    with httpx.Client(base_url=service.url) as client:
        answer = client.get("/v1/session")
        assert (answer.json()["signed_in"], answer.json()["csrf"]) == (False, None)
        assert "set-cookie" not in answer.headers
        for refused in (client.post(ITEMS, json=NEW_TEXT), client.get("/v1/collections/scenes/clicks?format=csv")):
            assert (refused.status_code, kind(refused)) == (401, "token-needed")


def test_a_key_begins_one_session(shared_service: Start) -> None:
    service = shared_service()
    sessions = service.context.credentials.sessions
    key = sessions.key()
    with httpx.Client(base_url=service.url) as client:
        csrf = {"X-Diptych-CSRF": client.post("/v1/session", json={"key": key}).json()["csrf"]}
        assert client.post(ITEMS, json=NEW_TEXT, headers=csrf).status_code == 201
    for wrong in (key, "made.up.0", sessions.cookie(sessions.new())):
        assert kind(httpx.post(f"{service.url}/v1/session", json={"key": wrong})) == "token-needed"
    for body in ({}, {"key": key, "token": service.token}):
        assert kind(httpx.post(f"{service.url}/v1/session", json=body)) == "invalid-request"


def test_keys_and_ended_sessions_are_known_to_every_process(tmp_path: Path) -> None:
    now = 1_000_000.0
    one, other = (PageSessions("secret", "token", tmp_path / "sessions", clock=lambda: now) for _ in range(2))
    key, late = one.key(), one.key()
    session = other.begin(key)
    assert session is not None
    assert one.begin(key) is None
    cookie = other.cookie(session)
    assert one.read(cookie) == session
    one.end(session)
    assert other.read(cookie) is None
    assert PageSessions("secret", "token", tmp_path / "sessions", clock=lambda: now).read(cookie) is None
    now += KEY_SECONDS + 1
    assert other.begin(late) is None


def test_a_session_that_ended_elsewhere_lasts_a_week_at_most(tmp_path: Path) -> None:
    now = float(int(time.time()))
    here, elsewhere = (PageSessions("secret", "token", tmp_path / name, clock=lambda: now) for name in ("a", "b"))
    began, session = now, here.new()
    cookie = here.cookie(session)
    here.end(session)
    # Whoever has a copy of the cookie visits the other machine again and again, and gets it renewed each time.
    while elsewhere.read(cookie) is not None:
        cookie = elsewhere.cookie(session)
        assert here.read(cookie) is None
        last, now = now, now + SESSION_SECONDS / 3
    assert last - began <= LONGEST_SESSION_SECONDS == 7 * 24 * 3600
    assert now - began > LONGEST_SESSION_SECONDS
    # What ended is remembered for as long as any cookie of it could last.
    os.utime(tmp_path / "a" / session, (began - LONGEST_SESSION_SECONDS,) * 2)
    here.end(here.new())
    assert (tmp_path / "a" / session).exists()


# As another user of this machine, whom the program becomes when it has imported all it needs.
STRANGER = """
import json, os, sys, urllib.error, urllib.request
def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(sys.argv[1] + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)
ask("/health")
os.setuid(65534)
print(json.dumps([ask(*each) for each in json.loads(sys.argv[2])]))
"""


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root becomes another user")
def test_another_user_of_this_machine_only_reads(shared_service: Start) -> None:
    service = shared_service()
    asked: list[Any] = [
        ["/v1/session"],
        [ITEMS],
        [ITEMS, NEW_TEXT],
        ["/v1/collections/scenes/clicks?format=csv"],
    ]
    command = [sys.executable, "-c", STRANGER, service.url, json.dumps(asked)]
    answers = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout)
    assert [status for status, _ in answers] == [200, 200, 401, 401]
    assert answers[0][1]["csrf"] is None


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer", "Basic YTpi", "Bearer é", "", "Bearer a-token-that"])
def test_a_wrong_token_is_refused_even_for_reading(shared_service: Start, header: str) -> None:
    service = shared_service()
    answer = httpx.get(service.url + ITEMS, headers={"Authorization": header.encode("latin-1")})
    assert (answer.status_code, kind(answer)) == (401, "token-needed")


def test_the_page_writes_with_its_session_and_csrf(page: tuple[Any, httpx.Client]) -> None:
    _, client = page
    assert client.post(ITEMS, json=NEW_TEXT).status_code == 201


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(shared_service: Start) -> None:
    service = shared_service()
    answer = httpx.post(f"{service.url}/v1/session", json={"token": service.token})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"X-Diptych-CSRF": ""}, (403, "wrong-csrf")),
        ({"X-Diptych-CSRF": "0" * 64}, (403, "wrong-csrf")),
        ({"Sec-Fetch-Site": "cross-site"}, (403, "cross-site")),
        ({"Sec-Fetch-Site": "same-site"}, (403, "cross-site")),
        ({"Origin": "https://evil.example"}, (403, "cross-site")),
        ({"Origin": "null"}, (403, "cross-site")),
        ({"Origin": "http://127.0.0.1:1"}, (403, "cross-site")),
        ({"Origin": "http://["}, (403, "cross-site")),
        ({"Cookie": "diptych=1"}, (401, "token-needed")),
    ],
)
def test_a_forged_request_is_refused(
    page: tuple[Any, httpx.Client], changed: dict[str, str], expected: tuple[int, str]
) -> None:
    _, client = page
    if "Cookie" in changed:
        client.cookies.clear()
    answer = client.post(ITEMS, json=NEW_TEXT, headers=changed)
    assert (answer.status_code, kind(answer)) == expected


def test_another_session_s_csrf_is_refused(page: tuple[Any, httpx.Client]) -> None:
    service, client = page
    other = httpx.post(f"{service.url}/v1/session", json={"token": service.token}).json()["csrf"]
    assert other != client.headers["X-Diptych-CSRF"]
    assert client.post(ITEMS, json=NEW_TEXT, headers={"X-Diptych-CSRF": other}).status_code == 403


def test_other_sites_may_not_even_search(shared_service: Start) -> None:
    service = shared_service()
    answer = httpx.post(
        f"{service.url}/v1/collections/scenes/search", json={"query": "x"}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert kind(answer) == "cross-site"


def test_a_read_only_service_refuses_the_token_too(shared_service: Start) -> None:
    service = shared_service(read_only=True)
    answer = httpx.post(service.url + ITEMS, json=NEW_TEXT, headers=service.headers)
    assert (answer.status_code, kind(answer)) == (403, "read-only")
    assert httpx.get(f"{service.url}/v1/session").json()["read_only"] is True


@pytest.mark.parametrize(
    "path", [ITEMS, "/v1/openapi.json", "/docs", "/metrics", "/v1/nothing", "/v1", "/v1/uploads/x"]
)
def test_beyond_this_machine_reading_needs_the_token(shared_service: Start, path: str) -> None:
    service = shared_service(public=True)
    answer = httpx.get(service.url + path)
    assert (answer.status_code, kind(answer)) == (401, "token-needed")
    assert httpx.get(service.url + path, headers=service.headers).status_code in (200, 404)


def test_signing_in_and_out(shared_service: Start) -> None:
    service = shared_service(public=True)
    with httpx.Client(base_url=service.url) as client:
        document = client.get("/v1/session").json()
        assert (document["signed_in"], document["needs_token"], document["csrf"]) == (False, True, None)
        assert client.post("/v1/session", json={"token": "wrong"}).status_code == 401
        document = client.post("/v1/session", json={"token": service.token}).json()
        assert document["signed_in"]
        assert client.get("/v1/session").json()["csrf"] == document["csrf"]
        assert client.get(ITEMS).status_code == 200
        assert client.post(ITEMS, json=NEW_TEXT).status_code == 403
        csrf = {"X-Diptych-CSRF": document["csrf"]}
        assert client.post(ITEMS, json=NEW_TEXT, headers=csrf).status_code == 201
        kept = dict(client.cookies)
        assert client.delete("/v1/session").status_code == 204
        assert client.get(ITEMS).status_code == 401
        # Whoever copied the cookie has nothing any more.
        client.cookies.update(kept)
        assert client.get(ITEMS).status_code == 401
        assert client.post(ITEMS, json=NEW_TEXT, headers=csrf).status_code == 401


def test_health_needs_no_token_anywhere(shared_service: Start) -> None:
    service = shared_service(public=True)
    assert httpx.get(f"{service.url}/health").status_code == 200
    deadline = time.monotonic() + 60
    while (ready := httpx.get(f"{service.url}/ready")).status_code == 503 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ready.json() == {"ready": True, "collections": {}}
    assert httpx.get(f"{service.url}/ready", headers=service.headers).json()["collections"] == {"scenes": "ready"}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8765", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8765", 200),
        ("pictures.example", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("192.168.1.5", 421),
        ("localhost@evil.example", 400),
        ("local host", 400),
        ("", 400),
        ("[::1", 400),
        ("localhost:8765:1", 400),
    ],
)
def test_only_own_names_are_answered(shared_service: Start, host: str, status: int) -> None:
    service = shared_service(allowed_hosts=("Pictures.example",))
    for path in ("/health", ITEMS):
        answer = httpx.get(service.url + path, headers={"Host": host})
        assert answer.status_code == status
        assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


def test_beyond_this_machine_addresses_in_numbers_are_names_too(shared_service: Start) -> None:
    service = shared_service(public=True)
    assert httpx.get(f"{service.url}/health", headers={"Host": "192.168.1.5:80"}).status_code == 200
    assert httpx.get(f"{service.url}/health", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/health"),
        ("GET", "/nothing"),
        ("PUT", "/health"),
        ("POST", ITEMS),
        ("GET", ITEMS),
        ("GET", "/v1/session"),
    ],
)
def test_security_headers_are_on_every_answer(shared_service: Start, method: str, path: str) -> None:
    headers = httpx.request(method, shared_service().url + path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "geolocation=()" in headers["permissions-policy"]
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_too_many_requests_are_told_when_to_come_back(shared_service: Start) -> None:
    service = shared_service(limits={"requests_per_second": 1.0, "burst": 3})
    with httpx.Client(base_url=service.url) as client:
        answers = [client.get("/v1/session") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert kind(answers[-1]) == "too-many-requests"
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_body_beyond_the_limit_is_refused_while_it_arrives(shared_service: Start, is_announced: bool) -> None:
    service = shared_service(limits={"body_bytes": 1000})
    body = b'{"captions": ["' + b"a" * 5000 + b'"]}'
    content: Any = body if is_announced else iter([body[:600], body[600:]])
    headers = {**service.headers, "Content-Type": "application/json"}
    answer = httpx.post(service.url + ITEMS, content=content, headers=headers)
    assert (answer.status_code, kind(answer)) == (413, "too-large")
    assert httpx.get(service.url + ITEMS).json()["total"] == 60


def test_a_slow_body_is_given_up(shared_service: Start) -> None:
    service = shared_service(limits={"body_seconds": 0.5})
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.settimeout(60)
        started = time.monotonic()
        connection.sendall(
            b"POST " + ITEMS.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 500\r\nAuthorization: Bearer " + service.token.encode() + b"\r\n\r\n{"
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 408")
        assert time.monotonic() - started > 0.3


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def is_open(connection: socket.socket) -> bool:
    """Say whether a connection that nothing was answered on still is one."""
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


HALF_A_HEAD = b"GET /health HTTP/1.1\r\nHost: loc"
HALF_A_BODY = b"POST /v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"


@pytest.mark.parametrize("said", [b"", HALF_A_HEAD, HALF_A_BODY])
def test_a_client_that_holds_many_connections_locks_nobody_out(shared_service: Start, said: bytes) -> None:
    service = shared_service(limits={"requests_per_second": 0.0})
    with ExitStack() as closing:
        held = [closing.enter_context(connected(service.port)) for _ in range(400)]
        for connection in held:
            connection.sendall(said)
        assert httpx.get(f"{service.url}/health", timeout=30).status_code == 200


def test_a_search_that_lasts_longer_than_a_body_may_take_is_no_slow_body(shared_service: Start) -> None:
    service = shared_service(limits={"body_seconds": 1.0})
    with httpx.Client(base_url=service.url) as client:
        client.get("/health")
        time.sleep(1.1)
        assert client.post("/v1/collections/scenes/search", json={"query": "a red car"}).status_code == 200


@given(st.floats(0.1, 100), st.integers(1, 50), st.lists(st.floats(0, 5), min_size=1, max_size=60))
def test_a_bucket_never_gives_more_than_its_rate_and_burst(rate: float, burst: int, pauses: list[float]) -> None:
    now = 0.0
    buckets = TokenBuckets(rate, burst, clock=lambda: now)
    taken = 0
    for pause in pauses:
        now += pause
        wait = buckets.take("a")
        taken += wait == 0.0
        if wait > 0:
            now += wait + 1e-6
            assert buckets.take("a") == 0.0
            taken += 1
        assert taken <= burst + rate * now + 1e-6


def test_buckets_of_a_million_clients_fit_in_bounded_memory() -> None:
    buckets = TokenBuckets(1.0, 2, max_clients=100)
    for client in range(10_000):
        buckets.take(str(client))
    assert len(buckets) == 100


@given(st.text(max_size=80))
def test_no_made_up_cookie_is_a_session(cookie: str) -> None:
    assert PageSessions("secret", "token").read(cookie) is None


def test_a_session_ends_with_time_with_the_token_and_with_any_change() -> None:
    now = 1_000_000.0
    sessions = PageSessions("secret", "token", clock=lambda: now)
    session = sessions.new()
    cookie = sessions.cookie(session)
    assert sessions.read(cookie) == session
    assert PageSessions("secret", "another token", clock=lambda: now).read(cookie) is None
    assert PageSessions("another secret", "token", clock=lambda: now).read(cookie) is None
    for position in range(len(cookie)):
        changed = cookie[:position] + ("0" if cookie[position] != "0" else "1") + cookie[position + 1 :]
        assert sessions.read(changed) is None
    now += SESSION_SECONDS + 1
    assert sessions.read(cookie) is None


@given(st.text(max_size=40))
def test_a_host_header_is_a_name_or_nothing(header: str) -> None:
    name = host_name(header)
    assert name is None or name == name.lower().strip("[]")


def test_who_is_refused_before_the_body_was_read_still_hears_why(shared_service: Start) -> None:
    body = bytes(12 * 2**20)
    # One connection for each request, as proxies do, and a client that reads only when it has sent everything.
    head = f"POST {ITEMS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", shared_service().port), timeout=60) as connection:
        connection.sendall(f"{head}Content-Type: multipart/form-data; boundary=x\r\n\r\n".encode() + body)
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 401")
