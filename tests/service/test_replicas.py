"""Services of one collection in object storage: a writer, and a replica that has nothing but the address."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from diptych.collection import Collection, Record
from tests.service.conftest import TOKEN, ServiceProcess

ITEMS = "/v1/collections/pictures/items"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def served(address: str, cache: Path, *words: str) -> Iterator[ServiceProcess]:
    """``diptych serve`` on a machine with a cache of its own."""
    log = cache.with_suffix(".log")
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(cache),
        "XDG_STATE_HOME": f"{cache}-state",
        "DIPTYCH_TOKEN": TOKEN,
    }
    command = [sys.executable, "-m", "diptych", "serve", address, "--name", "pictures", "--port", "0", *words]
    with log.open("w") as stream:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True, env=environment)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "http://" in line, log.read_text()
    service = ServiceProcess(line.split()[-1].rstrip("/"), process, log)
    try:
        yield service
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()


def until(what: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def test_a_replica_answers_hands_on_changes_and_survives_the_storage(
    storage: Any, own_scene_collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in storage.environment.items():
        monkeypatch.setenv(name, value)
    address = f"{storage.address}/{tmp_path.name}"
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    with Collection.open(own_scene_collection / ".diptych") as folder:
        records = []
        for item in list(folder)[:12]:
            source = folder.path_of(item)
            assert source is not None
            shutil.copy(source, pictures)
            records.append(Record(pictures / source.name, captions=item.captions, id=item.id))
        with Collection.create(address, folder.retriever, root=pictures) as made:
            made.add(records)
            expected = [answer.item.id for answer in made.search("a red ball", 5) if answer.item]
    original = records[0].path
    assert original is not None
    content = Path(original).read_bytes()
    # The replica has no pictures of its own: what it shows comes from the storage.
    shutil.rmtree(pictures)
    with ExitStack() as stack:
        writer = stack.enter_context(served(address, tmp_path / "writer"))
        replica = stack.enter_context(served(address, tmp_path / "replica", "--writer", writer.url))
        for service in (writer, replica):
            service.wait_until_ready()
        client = stack.enter_context(httpx.Client(base_url=replica.url, headers=HEADERS, timeout=60))

        def search() -> dict[str, Any]:
            return dict(client.post("/v1/collections/pictures/search", json={"query": "a red ball", "limit": 5}).json())

        found = search()
        assert [answer["id"] for answer in found["answers"]] == expected
        assert found["storage_away_seconds"] is None
        item_id = str(records[0].id)
        got = client.get(f"{ITEMS}/{item_id}/original", headers={"Range": "bytes=10-99"})
        assert (got.status_code, got.content) == (206, content[10:100])
        assert client.get(f"{ITEMS}/{item_id}/thumbnail").content.startswith(b"\xff\xd8")
        changed = client.patch(f"{ITEMS}/{item_id}", json={"captions": ["handed on to the writer"]})
        assert changed.status_code == 200, changed.text
        until(lambda: client.get(f"{ITEMS}/{item_id}").json()["captions"] == ["handed on to the writer"])
        storage.kill("s3")
        try:
            away = until(lambda: search()["storage_away_seconds"])
            assert away > 1
            assert [answer["id"] for answer in search()["answers"]] == expected
            assert "diptych_storage_away_seconds" in client.get("/metrics").text
            refused = client.patch(f"{ITEMS}/{item_id}", json={"captions": ["too late"]})
            assert (refused.status_code, refused.json()["type"].rpartition("/")[2]) == (503, "storage-away")
        finally:
            storage.start("s3")
        until(lambda: search()["storage_away_seconds"] is None)
