from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from diptych.collection import (
    Collection,
    CollectionError,
    Record,
    backup_collection,
    restore_collection,
)
from diptych.errors import InvalidInputError
from diptych.service.clicks import ClickLog
from tests.doubles import ToyRetriever, wrong_points
from tests.doubles.random_writer import state_of

ROOT = Path(__file__).parents[2]


def open_toy(folder: Path) -> Collection:
    return Collection.open(folder, load_retriever=ToyRetriever.load)


@contextmanager
def writing(folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Let another process add, change and remove items and retrievers and repair, as fast as it can."""
    command = [sys.executable, "-m", "tests.doubles.random_writer", str(folder), str(folder.parent), "5"]
    with log.open("w") as stream:
        writer = subprocess.Popen(command, stdout=stream, cwd=ROOT)
    try:
        wait_for_changes(log, writer, 2)
        yield writer
        # A change may have been in a backup before it was acknowledged.
        wait_for_changes(log, writer, len(changes_in(log)))
    finally:
        writer.kill()
        writer.wait()


def wait_for_changes(log: Path, writer: subprocess.Popen[bytes], count: int) -> None:
    """Wait until more changes than ``count`` are acknowledged."""
    while len(changes_in(log)) <= count:
        assert writer.poll() is None
        time.sleep(0.01)


def changes_in(log: Path) -> list[dict[str, Any]]:
    """Return the changes that were acknowledged, in their order; long additions are, part by part."""
    said = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [line["done"] for line in said if "done" in line]


def histories(log: Path) -> list[dict[str, Any]]:
    """Return what was in the collection after each change."""
    states: dict[str, Any] = {}
    found = [states]
    for change in changes_in(log):
        changed = {**states, **change}
        states = {name: state for name, state in changed.items() if state is not None}
        found.append(states)
    return found


def test_a_backup_is_the_collection_of_one_moment_while_another_process_writes(
    collection: Collection, tmp_path: Path
) -> None:
    moments, log = [], tmp_path / "log"
    with writing(collection.folder, log) as writer:
        for number in range(3):
            before = len(changes_in(log))
            backup_collection(collection.folder, tmp_path / f"backup {number}")
            moments.append((before, len(changes_in(log)) + 1))
            wait_for_changes(log, writer, before)
    history = histories(log)
    for number, (first, last) in enumerate(moments):
        report = restore_collection(tmp_path / f"backup {number}", tmp_path / f"restored {number}")
        with open_toy(report.target) as restored:
            assert state_of(restored) in history[first : last + 1]
            assert report.items == len(restored)
            # A retriever that was being added at that moment is unfinished, and says so.
            assert [problem for problem in restored.verify().problems if "unfinished" not in problem] == []
            ready = [one.name for one in restored.retrievers() if one.ready]
            assert [problem for name in ready for problem in wrong_points(restored, name)] == []
            assert restored.add([Record(captions=["and it goes on"])]).added == 1
            assert restored.search("and it goes on", k=1, target="texts", hybrid=True)[0].caption == "and it goes on"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk_is_one_clear_error(collection: Collection, tmp_path: Path) -> None:
    collection.add([Record(captions=[f"text {number}"]) for number in range(300)])
    disk = tmp_path / "backups"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False).returncode:
        pytest.skip("cannot mount")
    try:
        with pytest.raises(CollectionError, match=rf"no room left for {disk}: .* choose another place for the backup"):
            backup_collection(collection.folder, disk / "today")
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_copy_that_cannot_be_written_is_one_clear_error(collection: Collection, tmp_path: Path) -> None:
    collection.add([Record(captions=[f"text {number}"]) for number in range(300)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    try:
        with pytest.raises(CollectionError, match="backups cannot be written"):
            backup_collection(collection.folder, tmp_path / "backups" / "today")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / "backups").iterdir()) == []


def test_paths_stay_right_wherever_it_is_restored(collection: Collection, photos: Path, tmp_path: Path) -> None:
    collection.add(photos)
    target = backup_collection(collection.folder, tmp_path / "backup").target
    # Beside other things, inside the pictures, and with pictures that have moved.
    elsewhere = restore_collection(target, tmp_path / "far" / "away", root=photos)
    inside = restore_collection(target, photos / "deep" / ".again", root=photos)
    moved = shutil.copytree(photos, tmp_path / "moved", ignore=shutil.ignore_patterns(".*", "deep"))
    new_root = restore_collection(target, moved / ".diptych", root=moved)
    assert [elsewhere.root, inside.root, new_root.root] == [photos, photos, moved]
    for report in (elsewhere, inside, new_root):
        with open_toy(report.target) as restored:
            assert restored.path_of(restored["b.png"]) == report.root / "b.png"
            assert restored.add(report.root / "b.png").unchanged == 1
    # What lies within its pictures moves with them.
    shutil.move(moved, tmp_path / "moved again")
    with open_toy(tmp_path / "moved again" / ".diptych") as restored:
        assert (restored.root, restored.is_root_trusted) == (tmp_path / "moved again", False)


def test_the_click_log_comes_along(collection: Collection, photos: Path, tmp_path: Path) -> None:
    collection.add(photos)
    with ClickLog(collection.store) as log:
        search = log.record_search(
            query="a", retriever="toy", fingerprint="f", target="images",
            shown=[("a", 1)], no_good_match=False, best_probability=None,
        )  # fmt: skip
        assert search is not None
        log.record_click(search_id=search, item="a", position=1, kind="open")
        # The log is open, and what was acknowledged lies in its journal.
        assert backup_collection(collection.folder, tmp_path / "backup").has_click_log
    target = restore_collection(tmp_path / "backup", tmp_path / "restored").target
    with open_toy(Path(target)) as restored, restored.store.reading() as db:
        assert db.rows("SELECT item FROM click") == [("a",)]


def test_what_cannot_be_done_is_one_clear_error(collection: Collection, photos: Path, tmp_path: Path) -> None:
    collection.add(photos)
    whole = backup_collection(collection.folder, tmp_path / "backup").target
    with pytest.raises(InvalidInputError, match="exists already"):
        backup_collection(collection.folder, whole)
    with pytest.raises(InvalidInputError, match="in the collection itself"):
        backup_collection(collection.folder, collection.folder / "backup")
    with pytest.raises(CollectionError, match="not a collection"):
        backup_collection(photos, tmp_path / "other")
    with pytest.raises(InvalidInputError, match="choose another place"):
        backup_collection(collection.folder, photos / "a.png" / "backup")
    with pytest.raises(InvalidInputError, match="exists already"):
        restore_collection(whole, photos)
    copy = whole / "collection.sqlite"
    copy.write_bytes(b"x" * 4096)
    with pytest.raises(CollectionError, match="is damaged"):
        restore_collection(whole, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()
    assert not (tmp_path / "other").exists()


def test_a_damaged_row_of_a_backup_is_named(collection: Collection, photos: Path, tmp_path: Path) -> None:
    collection.add(photos)
    target = backup_collection(collection.folder, tmp_path / "backup").target
    with closing(sqlite3.connect(target / "collection.sqlite")) as raw, raw:
        raw.execute("UPDATE item SET width = width + 1 WHERE path = 'b.png'")
    (problem,) = restore_collection(target, tmp_path / "restored").problems
    assert problem == "item b.png is not as it was written"


def test_another_format_is_refused(collection: Collection, photos: Path, tmp_path: Path) -> None:
    collection.add(photos)
    collection.store.write(lambda db: db.run("UPDATE meta SET value = '99' WHERE name = 'format'"))
    for use in (lambda: open_toy(collection.folder), lambda: backup_collection(collection.folder, tmp_path / "other")):
        with pytest.raises(CollectionError, match=r"format 99.*the version that made it"):
            use()
