from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from typer.testing import CliRunner, Result

from diptych.cli import app
from diptych.cli.commands.serve import served_collections, tell_sign_in
from diptych.collection import Collection
from diptych.errors import InvalidInputError
from diptych.service.security.tokens import PageSessions
from diptych.service.settings import Settings

Serve = Callable[..., Any]
ITEMS = "/v1/collections/scenes/items"
HEADERS = {"Authorization": "Bearer a-token-that-only-the-tests-know"}
CHILD_WORDS = "spawn_main"


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["serve", *map(str, words)], prog_name="diptych", env={"DIPTYCH_TOKEN": None})


def workers_of(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        # One may end while it is looked at.
        with suppress(OSError):
            if CHILD_WORDS in Path(f"/proc/{child}/cmdline").read_text():
                found.append(int(child))
    return found


def two_workers_of(pid: int, *, but: Sequence[int] = ()) -> list[int]:
    """Wait until both workers run, none of them one of ``but``: each is started again by itself."""
    deadline = time.monotonic() + 120
    while len(found := workers_of(pid)) != 2 or set(found) & set(but):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


class Writers:
    """Clients that add texts as fast as they can, and remember what the service acknowledged."""

    def __init__(self, url: str, count: int = 3) -> None:
        self.url = url
        self.acknowledged: list[str] = []
        self.statuses: list[int] = []
        self._is_ending = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending.set()
        for thread in self._threads:
            thread.join(timeout=60)

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + 120
        while len(self.acknowledged) < count:
            assert time.monotonic() < deadline, self.statuses
            time.sleep(0.01)

    def _write(self, writer: int) -> None:
        number = 0
        with httpx.Client(base_url=self.url, headers=HEADERS, timeout=30) as client:
            while not self._is_ending.is_set():
                number += 1
                try:
                    answer = client.post(ITEMS, json={"captions": [f"note {number} of writer {writer}"]})
                except httpx.TransportError:
                    # A service that ends needs the processor more than those who knock at its door.
                    time.sleep(0.05)
                    continue
                self.statuses.append(answer.status_code)
                if answer.status_code == 201:
                    self.acknowledged.append(answer.json()["id"])


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_service_prints_its_address_and_ends_cleanly(service_process: Serve, tmp_path: Path) -> None:
    service = service_process("--log-format", "json", token=None)
    token = (tmp_path / "state" / "diptych" / "token").read_text()
    assert stat.S_IMODE((tmp_path / "state" / "diptych" / "token").stat().st_mode) == 0o600
    secret_query = "a-very-private-question"
    httpx.get(f"{service.url}/v1/collections/scenes/search", params={"q": secret_query})
    headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "my-own-name"}
    answer = httpx.post(service.url + ITEMS, json={"captions": ["a kite"]}, headers=headers)
    assert (answer.status_code, answer.headers["x-request-id"]) == (201, "my-own-name")
    session = httpx.post(f"{service.url}/v1/session", json={"token": token})
    with socket.create_connection(("127.0.0.1", int(service.url.rsplit(":")[-1]))) as connection:
        connection.sendall(b"this is no HTTP\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")
    with socket.create_connection(("127.0.0.1", int(service.url.rsplit(":")[-1]))) as connection:
        head = f"POST {ITEMS} HTTP/1.1\r\nHost: elsewhere\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + b"no chunk\r\n")
        while connection.recv(1000):
            pass
    assert service.end(signal.SIGINT) == 0
    log = service.log.read_text()
    assert "Traceback" not in log
    assert all(line.startswith("{") for line in log.splitlines()), log
    lines = [json.loads(line) for line in log.splitlines()]
    (written,) = [line for line in lines if line.get("request_id") == "my-own-name"]
    assert written["route"] == "/v1/collections/{collection}/items"
    assert (written["method"], written["status"], written["client"]) == ("POST", 201, "127.0.0.1")
    assert written["milliseconds"] > 0
    assert written["bytes"] == len(answer.content)
    for secret in (token, secret_query, session.json()["csrf"], session.headers["set-cookie"].split(";")[0]):
        assert secret not in log


def test_what_libraries_say_is_a_line_of_the_log() -> None:
    program = """
import logging, sys, threading, warnings
from diptych.service.operations.logging import configure_logging
configure_logging(sys.argv[1])
warnings.warn("this is old")
library = logging.getLogger("another_package")
library.info("nobody needs to know")
library.error("first\\n\\nthird")
for end in (lambda: 1 / 0, sys.exit):
    thread = threading.Thread(target=end, name="folding")
    thread.start()
    thread.join()
"""
    command = [sys.executable, "-c", program]
    said = subprocess.run([*command, "json"], capture_output=True, text=True, check=True).stderr
    old, told, ended = (json.loads(line) for line in said.splitlines())
    assert "this is old" in old["message"]
    assert (told["level"], told["message"]) == ("error", "first\n\nthird")
    assert "folding" in ended["message"]
    assert "ZeroDivisionError" in ended["exception"]
    for_people = subprocess.run([*command, "text"], capture_output=True, text=True, check=True).stderr
    assert [len(text.split("this is old")) for text in for_people.split("\n\n")] == [2, 1]


def test_a_key_is_shown_to_a_person_and_to_no_log(own_scene_collection: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    settings = Settings(collections={"scenes": own_scene_collection}, token="a-token-that-only-the-tests-know")
    with redirect_stdout(io.StringIO()) as log, redirect_stdout(Terminal()) as terminal:
        tell_sign_in("http://127.0.0.1:8765/", settings)
    with redirect_stdout(log):
        tell_sign_in("http://127.0.0.1:8765/", settings)
    assert log.getvalue() == ""
    key = terminal.getvalue().strip().partition("http://127.0.0.1:8765/#key=")[2]
    assert PageSessions(settings.session_secret, settings.token).begin(key) is not None


def test_no_acknowledged_write_is_lost_when_a_service_is_ended(
    service_process: Serve, own_scene_collection: Path
) -> None:
    service = service_process("--quiet")
    head = f"POST {ITEMS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {HEADERS['Authorization']}\r\n"
    address = ("127.0.0.1", urlsplit(service.url).port or 0)
    with Writers(service.url) as writers, socket.create_connection(address) as upload:
        upload.sendall(f"{head}Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 9\r\n\r\n--x".encode())
        writers.wait_for(10)
        asked = time.monotonic()
        assert service.end() == 0
        assert time.monotonic() - asked <= 10
        # Nobody waits for the rest of an upload.
        assert upload.makefile("rb").readline().startswith(b"HTTP/1.1 503")
    assert set(writers.statuses) <= {201, 503}
    with Collection.open(own_scene_collection / ".diptych") as collection:
        assert set(writers.acknowledged) <= {item.id for item in collection}


def test_workers_share_reading_and_survive_one_another(service_process: Serve, own_scene_collection: Path) -> None:
    service = service_process("--workers", "2", "--watch", "--quiet", "--json")
    assert_sessions_are_shared(service)
    shutil.copyfile(next(own_scene_collection.glob("*.png")), own_scene_collection / "new.png")
    assert_numbers_add_up(service.url)
    # One of them follows the folder, and what it finds the other finds.
    deadline = time.monotonic() + 60
    while not httpx.get(service.url + ITEMS, params={"filter": "path:new.png"}).json()["total"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    workers = two_workers_of(service.process.pid)
    with Writers(service.url, 2) as writers:
        writers.wait_for(4)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        known = len(writers.acknowledged)
        writers.wait_for(known + 4)
        service.wait_until_ready()
        two_workers_of(service.process.pid, but=workers)
        assert service.end() == 0
    assert set(writers.statuses) <= {201, 503}
    with Collection.open(own_scene_collection / ".diptych") as collection:
        assert set(writers.acknowledged) <= {item.id for item in collection}


def assert_sessions_are_shared(service: Any) -> None:
    """Whichever process is asked, a key begins one session, which all know until it ends."""
    address, _, key = service.sign_in.partition("#key=")
    assert address.rstrip("/") == service.url
    signed_in = httpx.post(f"{service.url}/v1/session", json={"key": key})
    csrf = {"X-Diptych-CSRF": signed_in.json()["csrf"]}
    cookies = dict(signed_in.cookies)
    log = f"{service.url}/v1/collections/scenes/query-log"
    # A connection each, so that both workers get some.
    assert {httpx.get(log, headers=csrf, cookies=cookies).status_code for _ in range(8)} == {200}
    assert {httpx.post(f"{service.url}/v1/session", json={"key": key}).status_code for _ in range(8)} == {401}
    httpx.delete(f"{service.url}/v1/session", cookies=cookies)
    assert {httpx.get(log, headers=csrf, cookies=cookies).status_code for _ in range(8)} == {401}


def assert_numbers_add_up(url: str) -> None:
    """Whichever process is asked, the counts are those of all."""
    for _ in range(12):
        # A connection each, so that both workers get some.
        assert httpx.get(f"{url}/v1/collections/scenes/search", params={"q": "a car"}).status_code == 200
    answer = httpx.post(url + ITEMS, json={"captions": ["a kite"]}, headers=HEADERS, timeout=120)
    assert answer.status_code == 201
    assert len(answer.headers.get_list("date")) == 1
    search = 'diptych_requests_total{method="GET",route="/v1/collections/{collection}/search",status="200"} 12.0'
    write = 'diptych_requests_total{method="POST",route="/v1/collections/{collection}/items",status="201"} 1.0'
    # A request is counted when its answer has been sent, which may be a moment after it was read.
    ends = time.monotonic() + 20
    while not all(write in httpx.get(f"{url}/metrics").text for _ in range(4)) and time.monotonic() < ends:
        time.sleep(0.1)
    for text in [httpx.get(f"{url}/metrics").text for _ in range(4)]:
        assert search in text
        assert write in text


def test_a_port_in_use_costs_one_line_that_names_a_free_one(own_scene_collection: Path, taken_port: int) -> None:
    result = run(own_scene_collection, "--port", taken_port)
    assert result.exit_code == 2
    named = re.search(r"--port (\d+)", result.stderr)
    assert named is not None
    socket.create_server(("127.0.0.1", int(named[1]))).close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_strangers_need_a_token(own_scene_collection: Path, host: str) -> None:
    result = run(own_scene_collection, "--host", host)
    assert result.exit_code == 2
    assert "--token-file" in result.stderr
    assert "secrets.token_urlsafe" in result.stderr


def test_a_service_behind_a_proxy_needs_a_token_too(own_scene_collection: Path) -> None:
    for option in ("--proxy=127.0.0.1", "--allow-host=pictures.example"):
        assert "--token-file" in run(own_scene_collection, option).stderr


def test_a_token_that_could_be_guessed_is_refused(own_scene_collection: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2\n")
    result = run(own_scene_collection, "--token-file", tmp_path / "token")
    assert result.exit_code == 2
    assert "16" in result.stderr
    assert "hunter2" not in result.stderr


def test_a_folder_that_was_never_indexed_says_how(tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    result = run(tmp_path / "holiday")
    assert result.exit_code == 2
    assert "diptych index" in result.stderr
    assert "does not exist" in run(tmp_path / "nowhere").stderr


def test_collections_get_names_of_their_own(own_scene_collection: Path) -> None:
    twice = [own_scene_collection, own_scene_collection / ".diptych"]
    assert list(served_collections(twice, [])) == ["scenes", "scenes-2"]
    assert list(served_collections(twice, ["a", "b"])) == ["a", "b"]
    for names in (["a"], ["a", "a"], ["a", "../b"], ["a", ""]):
        with pytest.raises(InvalidInputError, match="--name"):
            served_collections(twice, names)
