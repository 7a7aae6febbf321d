"""Paths of addresses are paths like any other, on every version of Python."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from diptych.data.remote_files import RemotePath, full_path
from diptych.encoders.image.reading_once import hashed_path


@pytest.fixture
def folder() -> Iterator[RemotePath]:
    files = fsspec.filesystem("memory")
    for name, content in {"a.jpg": b"abc", "day #1/b.jpg": b"abcd"}.items():
        files.pipe(f"/remote files/{name}", content)
    yield RemotePath("memory://remote files")
    files.rm("/remote files", recursive=True)


def test_a_remote_path_is_a_path(folder: RemotePath) -> None:
    first, second = folder.files()
    assert [os.fspath(path) for path in (first, second)] == [
        "memory://remote files/a.jpg",
        "memory://remote files/day #1/b.jpg",
    ]
    for same in (folder / "a.jpg", full_path("memory:/remote files/a.jpg"), pickle.loads(pickle.dumps(first))):
        assert (same, type(same), hash(same)) == (first, RemotePath, hash(first))
    assert (first.stem, first.suffix, first.parent, str(first.with_name("c"))) == ("a", ".jpg", folder, f"{folder}/c")
    assert second.relative_to(folder).parts == ("day #1", "b.jpg")
    assert not folder.is_relative_to("/remote files")
    assert not Path("/remote files").is_relative_to(folder)


def test_files_are_read_and_not_written(folder: RemotePath) -> None:
    path = folder / "a.jpg"
    assert (folder.is_dir(), path.is_dir(), path.is_file(), (folder / "none.jpg").exists()) == (
        True,
        False,
        True,
        False,
    )
    assert path.stat().st_mtime_ns == next(folder.files()).listed.st_mtime_ns  # type: ignore[union-attr]
    hashed = hashed_path(path, None, None, {})
    assert (str(hashed), hashed.open("rb").read()) == (str(path), b"abc")
    with pytest.raises(OSError, match="only read"):
        path.open("wb")
    with pytest.raises(FileNotFoundError):
        (folder / "none.jpg").stat()
