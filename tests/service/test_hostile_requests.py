"""Two thousand requests that no honest client sends, to ``diptych serve`` as people run it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from PIL import Image, PngImagePlugin

from diptych.collection import Collection, Record
from tests.service.hostile_requests import BASE, Hostile, hostile_requests, request, written

Serve = Callable[..., Any]
CANARY = b"canary-7f3a9c51d2"
MOST_GROWTH_BYTES = 500 * 2**20
N_REQUESTS = 2_000
UNFINISHED = written(f"{BASE}/search", b'{"query": "a"}')[:-3]


class Answer(NamedTuple):
    sent: Hostile
    status: int | None
    body: bytes


def send(port: int, sent: Hostile) -> Answer:
    """Send bytes as they are and read what comes; a server that waits for more of a broken request is left alone."""
    received = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        try:
            connection.sendall(sent.content)
            connection.settimeout(30 if sent.is_whole else 0.7)
            while len(received) < 2**20 and (chunk := connection.recv(65536)):
                received += chunk
        except (ConnectionResetError, BrokenPipeError):
            pass
        except TimeoutError:
            assert not sent.is_whole, f"no answer to {sent.content[:200]!r}"
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    return Answer(sent, int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") else None, body)


def begin(port: int, content: bytes) -> socket.socket:
    """Open a connection that never finishes what it says."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(content)
    return connection


def assert_given_up(connection: socket.socket, seconds: float) -> None:
    connection.settimeout(seconds)
    ending = connection.recv(4096)
    assert ending == b"" or ending.startswith((b"HTTP/1.1 408", b"HTTP/1.1 400"))
    connection.close()


def memory_of(pid: int, field: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field))


@pytest.fixture
def planted(own_scene_collection: Path, tmp_path: Path) -> Path:
    """A picture outside the root with a secret in it, and ways to it inside: links that were indexed, and a swap."""
    secret = tmp_path / "outside" / "canary.png"
    secret.parent.mkdir()
    notes = PngImagePlugin.PngInfo()
    notes.add_text("secret", CANARY.decode())
    Image.new("RGB", (64, 64), "red").save(secret, pnginfo=notes)
    (own_scene_collection / "link.png").symlink_to(secret)
    (own_scene_collection / "linked").symlink_to(secret.parent)
    with Collection.open(own_scene_collection / ".diptych") as collection:
        collection.add(
            [Record(own_scene_collection / "link.png"), Record(own_scene_collection / "linked" / "canary.png")]
        )
    swapped = own_scene_collection / "scene-000000.png"
    swapped.unlink()
    swapped.symlink_to(secret)
    return secret


def test_two_thousand_hostile_requests(service_process: Serve, planted: Path) -> None:
    service = service_process("--quiet", "--rate-limit", "0")
    port = int(service.url.rpartition(":")[2])
    pid = service.process.pid
    listed = httpx.get(f"{service.url}{BASE}/items", params={"limit": 200}).json()["items"]
    before = memory_of(pid, "VmRSS")
    # None of these finishes what it says: 30 in the headers, and 30 in the body.
    slow = [begin(port, UNFINISHED[:40]) for _ in range(30)]
    slower = [begin(port, UNFINISHED) for _ in range(30)]
    requests = hostile_requests(planted, listed[1]["id"])
    assert len(requests) >= N_REQUESTS
    requests += [Hostile(request("GET", f"{BASE}/items/{item['id']}/original"), True) for item in listed]
    # Most of the time is spent waiting for answers to what is broken, which may never come.
    with ThreadPoolExecutor(48) as pool:
        answers = list(pool.map(lambda sent: send(port, sent), requests))

    failed = [(answer.status, answer.sent.content[:300]) for answer in answers if (answer.status or 0) >= 500]
    assert failed == []
    leaked = [answer.sent.content[:300] for answer in answers if CANARY in answer.body or b"root:x:0" in answer.body]
    assert leaked == []
    # Only what is far too long may see a closed connection instead of an answer.
    unanswered = [answer.sent for answer in answers if answer.status is None and answer.sent.is_whole]
    assert [sent.content[:300] for sent in unanswered if len(sent.content) < 2**20] == []
    assert sum(answer.status is not None for answer in answers) > 0.85 * len(answers)
    originals = [answer.status or 0 for answer in answers[-len(listed) :]]
    # The links, and the picture that became one.
    assert sorted(originals)[-3:] == [404, 404, 404]
    assert originals.count(200) == len(listed) - 3

    for connection in slow + slower:
        connection.close()

    assert service.process.poll() is None
    assert memory_of(pid, "VmHWM") - before < MOST_GROWTH_BYTES
    service.wait_until_ready(5)
    found = httpx.get(f"{service.url}{BASE}/search", params={"q": "a red car", "limit": 3})
    assert len(found.json()["answers"]) == 3
    assert service.end() == 0
    assert "Traceback" not in service.log.read_text()
    assert os.listdir(planted.parent) == [planted.name]


def test_bodies_that_never_end_are_given_up_while_others_are_served(shared_service: Serve) -> None:
    service = shared_service(limits={"body_seconds": 1.0})
    slow = [begin(service.port, UNFINISHED) for _ in range(30)]
    assert httpx.get(f"{service.url}{BASE}/search", params={"q": "a red car"}).status_code == 200
    for connection in slow:
        assert_given_up(connection, 20)
