from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

Start = Callable[..., Any]


def wait_until_ready(url: str, seconds: float = 20) -> httpx.Response:
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


def test_a_collection_that_cannot_be_searched_is_named(running_service: Start, own_scene_collection: Any) -> None:
    for file in (own_scene_collection / ".diptych" / "retrievers").rglob("*.safetensors"):
        file.write_bytes(b"")
    answer = wait_until_ready(running_service().url, seconds=1)
    assert answer.status_code == 503
    assert answer.json()["collections"]["scenes"].startswith("cannot be searched")
    assert str(own_scene_collection) not in answer.text
