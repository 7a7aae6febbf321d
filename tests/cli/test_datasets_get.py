from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import diptych.data.datasets
from diptych.data import Dataset, DatasetSplits, Download, load_dataset
from tests.cli.command_line import Run
from tests.data.breaking_server import BreakingServer, breaking_server, zip_of

FILES = {"photos/1.jpg": random.Random(1).randbytes(300_000), "words.txt": b"1.jpg\ta boat\n"}
ARCHIVE = zip_of(FILES)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BreakingServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with breaking_server() as running:
        yield running


@pytest.fixture
def offered(server: BreakingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BreakingServer:
    """A data set named ``boats`` whose archive is on the server."""

    def loader() -> DatasetSplits:
        return load_dataset("scenes", n_train=4, n_test=2, size=32)

    about: dict[str, Any] = {"homepage": "here", "citation": "us", "licence": "free", "splits": "one", "loader": loader}
    digest = hashlib.sha256(ARCHIVE).hexdigest()
    download = Download(server.url("boats.zip"), size=len(ARCHIVE), sha256=digest, note="only a test")
    boats = Dataset(name="boats", summary="boats", files=tuple(FILES), downloads=(download,), **about)
    form = Dataset(name="ships", summary="ships", files=("ships.txt",), steps="1. Fill in the form.", **about)
    monkeypatch.setattr(diptych.data.datasets, "DATASETS", (boats, form, *diptych.data.datasets.DATASETS))
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path / "data"))
    return server


def test_a_data_set_is_downloaded_and_its_folder_printed(offered: BreakingServer, run: Run, tmp_path: Path) -> None:
    remote = offered.add("boats.zip", ARCHIVE, breaks=[100_000])
    result = run("datasets", "get", "boats", "--yes")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{tmp_path / 'data' / 'boats'}\n"
    for name, content in FILES.items():
        assert (tmp_path / "data" / "boats" / name).read_bytes() == content
    for words in ("boats.zip (0 MB)", "note: only a test", "licence: free", "getting boats.zip (MB): "):
        assert words in result.stderr
    assert remote.asked_ranges == [None, "bytes=100000-"]
    assert json.loads(run("datasets", "show", "boats", "--json").stdout)["state"] == "found"
    again = run("datasets", "get", "boats")
    assert again.exit_code == 0
    assert "here already" in again.stderr
    assert len(remote.requests) == 2


def test_another_folder_and_silence(offered: BreakingServer, run: Run, tmp_path: Path) -> None:
    offered.add("boats.zip", ARCHIVE)
    quiet = run("datasets", "get", "boats", "--yes", "--quiet", "--folder", tmp_path / "data")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    other = run("datasets", "get", "boats", "-y", "--folder", tmp_path / "other")
    assert (tmp_path / "other" / "boats" / "words.txt").exists()
    assert f"Set DIPTYCH_DATA={tmp_path / 'other'}" in other.stderr


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ({"statuses": [404]}, "answers 404"),
        ({"content": ARCHIVE[:-1] + b"x"}, "came with the digest"),
        ({"content": b"short"}, "has 5 bytes instead of"),
    ],
)
def test_failures_are_one_line(offered: BreakingServer, run: Run, behaviour: dict[str, Any], message: str) -> None:
    offered.add("boats.zip", **{"content": ARCHIVE, **behaviour})
    result = run("datasets", "get", "boats", "--yes", "--quiet")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_nobody_agrees(offered: BreakingServer, run: Run) -> None:
    remote = offered.add("boats.zip", ARCHIVE)
    result = run("datasets", "get", "boats")
    assert result.exit_code == 2
    assert "add --yes" in result.stderr
    assert remote.requests == []


@pytest.mark.usefixtures("offered")
def test_a_form_prints_the_steps(run: Run, tmp_path: Path) -> None:
    result = run("datasets", "get", "ships")
    assert result.exit_code == 1
    assert "1. Fill in the form." in result.stdout
    assert str(tmp_path / "data" / "ships") in result.stdout
    for name in ("flickr8k", "pascal_sentence"):
        assert "1. " in run("datasets", "get", name).stdout
    built_in = run("datasets", "get", "scenes")
    assert (built_in.exit_code, built_in.stdout) == (0, "built in\n")
    assert "did you mean 'flickr8k'" in run("datasets", "get", "flicker8k").stderr


def test_killed_at_any_moment_it_goes_on(server: BreakingServer, tmp_path: Path) -> None:
    """The process is killed again and again in the middle; what was got is kept, and the end is right."""
    content = zip_of({"photo.jpg": random.Random(2).randbytes(2_000_000)})
    remote = server.add("set.zip", content, breaks=[150_000] * 3 + [None], stalls=30.0)
    code = (
        "import sys; from diptych.data import Download, fetch_downloads; "
        "fetch_downloads([Download(sys.argv[1])], sys.argv[2], timeout=60)"
    )
    command = [sys.executable, "-c", code, server.url("set.zip"), str(tmp_path)]
    for kill in range(1, 4):
        process = subprocess.Popen(command)
        part = tmp_path / "set.zip.part"
        deadline = time.monotonic() + 30
        while (not part.exists() or part.stat().st_size < kill * 150_000) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.wait()
    subprocess.run(command, check=True)
    assert remote.asked_ranges == [None, *(f"bytes={kill * 150_000}-" for kill in range(1, 4))]
    with (tmp_path / "photo.jpg").open("rb") as file:
        assert file.read() == random.Random(2).randbytes(2_000_000)
