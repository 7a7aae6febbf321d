"""The real program with pictures in a bucket of S3: indexed, searched, exported, checked and served."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.command_line import Program, Run, World
from tests.doubles.s3_server import s3_server

ADDRESS = "s3://bucket/photos"


@pytest.fixture
def bucket(scenery: World, nothing_indexed: Path) -> Iterator[list[Path]]:
    """A bucket with six pictures, and where they come from."""
    with s3_server():
        import fsspec

        files = fsspec.filesystem("s3")
        files.mkdir("bucket")
        pictures = sorted(scenery.pictures.glob("*.png"))[:6]
        for path in pictures:
            files.pipe(f"bucket/photos/{path.name}", path.read_bytes())
        yield pictures


def test_pictures_stay_in_their_bucket(program: Program, scenery: World, bucket: list[Path], tmp_path: Path) -> None:
    def run(*words: str | Path) -> str:
        done = program(*words)
        assert done.returncode == 0, done.stderr
        assert "secret" not in done.stdout + done.stderr
        return done.stdout

    place, model = ("--collection", tmp_path / "collection"), ("--retriever", scenery.retriever)
    indexed = run("index", ADDRESS, *place, *model, "--captions", scenery.captions)
    assert indexed.startswith("6 pictures and 30 captions")
    assert "6 unchanged" in run("index", ADDRESS, *place)
    first = f"{ADDRESS}/{bucket[0].name}"
    run("add", first, "--label", "first", *place)
    assert run("search", "a red car", "--filter", "label:first", "--all", *place).split() == [first]
    run("export", tmp_path / "exported", "--format", "folder", "--filter", "label:first", *place)
    assert bucket[0].read_bytes() in [path.read_bytes() for path in (tmp_path / "exported").rglob("*.png")]
    run("repair", *place)
    run("verify", *place)
    words = [sys.executable, "-m", "diptych", "serve", str(tmp_path / "collection"), "--port", "0", "--json", "-q"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            address = json.loads(service.stdout.readline())["address"]
            with httpx.Client(base_url=address, timeout=60) as client:
                (name,) = client.get("v1/collections").json()["collections"]
                items = f"v1/collections/{name['name']}/items"
                (item,) = client.get(items, params={"filter": "label:first"}).json()["items"]
                whole = client.get(f"{items}/{item['id']}/original")
                part = client.get(f"{items}/{item['id']}/original", headers={"Range": "bytes=5-9"})
            assert whole.content == bucket[0].read_bytes()
            assert (part.status_code, part.content) == (206, whole.content[5:10])
        finally:
            service.terminate()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "needs a place of its own"),
        (["--collection", "c", "--watch"], "leave --watch out"),
        (["--collection", "c", "--captions", "sidecar"], "name a caption file"),
    ],
)
def test_what_does_not_work_at_an_address_is_told_first(run: Run, words: list[str], reason: str) -> None:
    result = run("index", "memory://bucket/nowhere", *words)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.split())
