from __future__ import annotations

import stat
from pathlib import Path

import pytest

from diptych.atomic_files import atomic_write


def write_half(path: Path) -> None:
    with atomic_write(path) as draft:
        draft.write_text("half")
        raise RuntimeError("crash")


@pytest.mark.parametrize("durable", [False, True])
def test_the_file_has_the_new_content_and_nothing_else_is_left(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "note.txt"
    path.write_text("old")
    with atomic_write(path, durable=durable) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="crash"):
        write_half(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_must_not_be_replaced_stays(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    for content in ("first", "second"):
        try:
            with atomic_write(path, private=True, replace=False) as draft:
                draft.write_text(content)
        except FileExistsError:
            assert content == "second"
    assert path.read_text() == "first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    with atomic_write(path) as first, atomic_write(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"
