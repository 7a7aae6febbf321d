from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from diptych.encoders.networks import model_files
from diptych.encoders.networks.model_files import digest_of_files


@pytest.mark.parametrize("in_place", [True, False])
def test_a_change_that_keeps_size_and_time_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file, other = tmp_path / "weights", tmp_path / "other"
    file.write_bytes(b"first")
    other.write_bytes(b"other")
    state = file.stat()
    before = digest_of_files([file])
    if in_place:
        shutil.copyfile(other, file)
    else:
        os.replace(other, file)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    assert digest_of_files([file]) != before


def test_what_is_remembered_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "weights"
    file.write_bytes(b"first")
    before = digest_of_files([file])
    (note,) = (tmp_path / "diptych" / "networks" / "digests").iterdir()
    note.write_text("0" * 64)
    assert digest_of_files([file]) == before, "a process that knows it does not look again"
    # As at the next start.
    model_files._digest_in_state.cache_clear()
    assert digest_of_files([file]) != before
