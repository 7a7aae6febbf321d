from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from diptych.errors import (
    ActiveRetrieverError,
    CollectionBusyError,
    CollectionError,
    DiptychError,
    InvalidInputError,
    MissingPackageError,
    NoRoomError,
    UnknownItemError,
    UnknownNameError,
    UnknownRetrieverError,
    UnsearchableItemError,
)
from diptych.service.problems import (
    Problem,
    ProblemResponse,
    UnexpectedErrorMiddleware,
    add_problem_handlers,
    problem_of,
)

Start = Callable[..., Any]


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (Problem(418, "teapot", "No coffee."), 418, "teapot"),
        (InvalidInputError("k must be at least 1"), 422, "invalid-input"),
        (UnknownNameError("target", "sounds", ["images"]), 422, "invalid-input"),
        (MissingPackageError("searching", "faiss-cpu"), 501, "missing-package"),
        (UnknownItemError("there is no item 'x' in /home/me/photos; name an id"), 404, "no-such-item"),
        (CollectionBusyError("/home/me/photos is being written by another process; wait"), 503, "busy"),
        (UnknownRetrieverError("no 'x' in /home/me/photos"), 404, "no-such-retriever"),
        (ActiveRetrieverError("'x' of /home/me/photos is active"), 409, "retriever-active"),
        (UnsearchableItemError("item x has neither a picture nor a caption"), 422, "invalid-input"),
        (CollectionError("table items in /home/me/photos cannot be read"), 500, "collection-unusable"),
        (HTTPException(404), 404, "no-such-address"),
        (HTTPException(405, headers={"Allow": "GET"}), 405, "method-not-allowed"),
        (DiptychError("who knows"), 500, "unexpected-error"),
        (RuntimeError("who knows"), 500, "unexpected-error"),
        (OSError(errno.ENOSPC, "No space left on device", "/home/me/x"), 507, "no-room"),
        (NoRoomError("/home/me/x", 4096), 507, "no-room"),
        (PermissionError(errno.EROFS, "Read-only file system", "/home/me/x"), 403, "not-writable"),
        (FileNotFoundError(errno.ENOENT, "who knows", "/home/me/x"), 500, "unexpected-error"),
    ],
)
def test_every_error_has_its_problem(error: Exception, status: int, kind: str) -> None:
    problem = problem_of(error)
    assert (problem.status, problem.kind) == (status, kind)
    assert "/home/me" not in json.dumps(problem.document())
    assert "who knows" not in problem.detail


def test_a_full_disk_says_how_much_is_missing() -> None:
    problem = problem_of(NoRoomError("/home/me/x", 4096))
    assert problem.document()["missing_bytes"] == 4096
    assert "4,096 bytes" in problem.detail


def test_busy_says_when_to_come_back_and_a_wrong_method_what_to_use() -> None:
    assert problem_of(CollectionBusyError("it is being written")).headers["Retry-After"]
    assert problem_of(HTTPException(405, headers={"Allow": "GET"})).headers == {"Allow": "GET"}


@given(st.text())
def test_any_detail_can_be_sent(detail: str) -> None:
    document = json.loads(ProblemResponse(Problem(400, "odd", detail)).body)
    assert document["type"] == "/problems/odd"
    assert document["status"] == 400


def test_a_defect_is_logged_and_told_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()
    add_problem_handlers(app)
    app.add_middleware(UnexpectedErrorMiddleware)

    @app.get("/")
    def fail() -> None:
        raise RuntimeError("an inner secret")

    answer = TestClient(app, raise_server_exceptions=True).get("/")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text
    assert "an inner secret" in caplog.text


async def never_answers(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.Event().wait()


def test_a_request_that_a_server_gives_up_when_it_ends_is_told_to_come_back() -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def cancelled() -> None:
        scope = {"type": "http", "method": "POST", "path": "/v1/collections/scenes/items", "headers": []}
        request = asyncio.ensure_future(UnexpectedErrorMiddleware(never_answers)(scope, receive, send))
        await asyncio.sleep(0)
        request.cancel()
        await request

    asyncio.run(cancelled())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["type"] == "/problems/busy"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "/nowhere", None, 404, "no-such-address"),
        ("PUT", "/health", None, 405, "method-not-allowed"),
        ("GET", "/v1/collections/other", None, 404, "no-such-collection"),
        ("GET", "/v1/collections/scenes/items/unknown", None, 404, "no-such-item"),
        ("POST", "/v1/collections/scenes/search", b"{", 422, "invalid-request"),
        ("POST", "/v1/collections/scenes/search", b'{"query": "a", "limit": 0}', 422, "invalid-request"),
        ("POST", "/v1/collections/scenes/search", b'{"query": "a", "filter": "((("}', 422, "invalid-input"),
        ("POST", "/v1/collections/scenes/search", b"\xff\xfe", None, None),
    ],
)
def test_a_client_s_mistake_is_a_problem_document(
    shared_service: Start, method: str, path: str, body: bytes | None, status: int | None, kind: str | None
) -> None:
    service = shared_service()
    answer = httpx.request(method, service.url + path, content=body, headers={"Content-Type": "application/json"})
    document = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert 400 <= answer.status_code < 500
    assert document["status"] == answer.status_code
    if status is not None:
        assert (answer.status_code, document["type"]) == (status, f"/problems/{kind}")
    if kind == "invalid-request":
        assert document["errors"][0]["message"]


def test_a_collection_that_another_process_writes_is_busy(running_service: Start, own_scene_collection: Path) -> None:
    from diptych.collection.store.sqlite import write_lock

    service = running_service(limits={"write_wait_seconds": 0.2})
    with write_lock(own_scene_collection / ".diptych" / "write.lock"):
        answer = httpx.post(
            f"{service.url}/v1/collections/scenes/items", json={"captions": ["a kite"]}, headers=service.headers
        )
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/busy")
    assert int(answer.headers["retry-after"]) > 0
