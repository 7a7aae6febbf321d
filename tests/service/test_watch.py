from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from diptych.cli import app

Start = Callable[..., Any]


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_services_follow_their_folder_one_at_a_time(
    running_service: Start,
    own_scene_collection: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("diptych.service.hosting._RETRY_SECONDS", 0.05)
    caplog.set_level(logging.INFO, "diptych.service")
    services = [running_service(watch=True) for _ in range(2)]
    first, second, *_ = sorted(own_scene_collection.glob("*.png"))

    def found(service: Any, name: str) -> int:
        answer = httpx.get(f"{service.url}/v1/collections/scenes/items", params={"filter": f"path:{name}"})
        return int(answer.json()["total"])

    def counted(change: str) -> list[float]:
        name = f'diptych_watched_changes_total{{change="{change}",collection="scenes"}}'
        texts = [httpx.get(f"{service.url}/metrics").text for service in services]
        return sorted(sum(float(line.split()[1]) for line in text.splitlines() if name in line) for text in texts)

    shutil.copyfile(first, own_scene_collection / "new.png")
    second.unlink()
    wait_until(lambda: [(found(each, "new.png"), found(each, second.name)) for each in services] == [(1, 0), (1, 0)])
    wait_until(lambda: counted("removed") == [0, 1])
    # One of them has done it, and has said so.
    assert counted("added") == [0, 1]
    assert sum(message.startswith("collection scenes: 1 added") for message in caplog.messages) == 1
    # The other one takes over.
    services.pop(0).stop()
    shutil.copyfile(first, own_scene_collection / "newer.png")
    wait_until(lambda: found(services[0], "newer.png"))


def test_a_service_that_only_reads_follows_nothing(own_scene_collection: Path) -> None:
    words = ["serve", str(own_scene_collection), "--watch", "--read-only"]
    result = CliRunner().invoke(app, words, prog_name="diptych")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: --watch changes the collections, which --read-only forbids; leave one of them out\n"
    )
