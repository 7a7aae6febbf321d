"""Transactions: what is read is of one moment, what is acknowledged is there, and one job's fault is its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from diptych.collection.store import sqlite as sqlite_module
from diptych.collection.store.dialect import Connection
from diptych.collection.store.sqlite import SqliteStore
from diptych.collection.store.store import Store
from diptych.errors import CollectionBusyError, CollectionError, NoRoomError

KEEP_LOCK = """
import sys, time
from pathlib import Path
from diptych.collection.store.sqlite import SqliteStore
def job(db):
    db.run("INSERT INTO unread (path, reason) VALUES ('lost', '')")
    print('locked', flush=True)
    time.sleep(60)
SqliteStore.open(Path(sys.argv[1])).write(job)
"""


def note(store: Store, name: str) -> None:
    store.write(lambda db: db.run("INSERT INTO unread (path, reason) VALUES (?, '')", (name,)))


def noted(store: Store) -> list[str]:
    with store.reading() as db:
        return [path for (path,) in db.rows("SELECT path FROM unread ORDER BY path")]


def change(store: Store) -> None:
    store.write(lambda db: db.run("INSERT INTO change (kind) VALUES ('item')"))


def test_nested_blocks_read_one_moment(store: Store) -> None:
    note(store, "a")
    with store.reading() as db:
        assert noted(store) == ["a"]
        note(store, "b")
        assert noted(store) == ["a"]
        assert db.value("SELECT count(*) FROM unread") == 1
    assert noted(store) == ["a", "b"]


def test_a_block_in_a_job_reads_what_the_job_wrote(store: Store) -> None:
    def job(db: Connection) -> list[str]:
        db.run("INSERT INTO unread (path, reason) VALUES ('a', '')")
        return noted(store)

    assert store.write(job) == ["a"]


def test_a_job_that_fails_is_undone_alone(store: Store) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow(db: Connection) -> None:
        entered.set()
        go_on.wait(10)

    def failing(db: Connection) -> None:
        db.run("INSERT INTO unread (path, reason) VALUES ('never', '')")
        raise ZeroDivisionError

    def doubled(db: Connection) -> None:
        db.run("INSERT INTO unread (path, reason) VALUES ('never', ''), ('never', '')")

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(store.write, slow)
        entered.wait(10)
        # These wait together, and are committed together.
        good = [pool.submit(note, store, name) for name in "ab"]
        bad, broken = pool.submit(store.write, failing), pool.submit(store.write, doubled)
        good += [pool.submit(note, store, name) for name in "cd"]
        time.sleep(0.05)
        go_on.set()
        first.result()
        for each in good:
            each.result()
        with pytest.raises(ZeroDivisionError):
            bad.result()
        # A fault of our SQL is no damage of the collection.
        with pytest.raises(Exception, match=r"(?i)unique") as caught:
            broken.result()
        assert not isinstance(caught.value, CollectionError)
    assert noted(store) == ["a", "b", "c", "d"]


def test_a_job_cannot_wait_for_another(store: Store) -> None:
    with pytest.raises(RuntimeError, match="a job cannot call"):
        store.write(lambda db: note(store, "a"))
    note(store, "b")
    assert noted(store) == ["b"]


def test_the_number_of_the_last_change_grows(store: Store) -> None:
    assert store.last_change() == 0
    change(store)
    assert store.last_change() == 1
    with store.reading():
        assert store.last_change() == 1
        change(store)
        assert store.last_change() == 1
    assert store.last_change() == 2


def test_jobs_of_threads_are_all_there(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: note(store, f"{number:03}"), range(100)))
    assert noted(store) == [f"{number:03}" for number in range(100)]


def test_temporary_views_end_with_their_block(store: Store) -> None:
    with store.reading() as db:
        db.run("CREATE TEMP VIEW unread AS SELECT 'then' AS path, '' AS reason")
        assert noted(store) == ["then"]
    assert noted(store) == []


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore.create(tmp_path / "store")
    yield made
    made.close()


def _note_all(folder: Path, names: list[str]) -> None:
    store = SqliteStore.open(folder)
    for name in names:
        note(store, name)


def test_jobs_of_two_processes_are_all_there(sqlite: SqliteStore) -> None:
    note(sqlite, "parent")
    fork = multiprocessing.get_context("fork")
    # A forked process may go on with the store of its parent, too: it has connections of its own.
    others = [
        fork.Process(target=_note_all, args=(sqlite.folder, [f"a{number}" for number in range(30)])),
        fork.Process(target=lambda: [note(sqlite, f"b{number}") for number in range(30)]),
    ]
    for other in others:
        other.start()
    for number in range(30):
        note(sqlite, f"c{number}")
    for other in others:
        other.join(30)
    assert len(noted(sqlite)) == 91


def test_a_killed_writer_is_named_and_then_frees_the_lock(sqlite: SqliteStore) -> None:
    with subprocess.Popen([sys.executable, "-c", KEEP_LOCK, sqlite.folder], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(CollectionBusyError, match=rf"process {other.pid} on .* has been writing to "):
            sqlite.write(lambda db: db.run("DELETE FROM unread"), wait=0.1)
        assert noted(sqlite) == []
        os.kill(other.pid, signal.SIGKILL)
    note(sqlite, "a")
    assert noted(sqlite) == ["a"]


def test_a_store_that_was_closed_opens_again(sqlite: SqliteStore) -> None:
    note(sqlite, "a")
    sqlite.close()
    assert not (sqlite.folder / "collection.sqlite-wal").exists()
    note(sqlite, "b")
    assert noted(sqlite) == ["a", "b"]


def test_what_is_no_collection_is_told(tmp_path: Path, sqlite: SqliteStore) -> None:
    with pytest.raises(CollectionError, match=r"is not a collection: collection\.sqlite is missing"):
        SqliteStore.open(tmp_path)
    with pytest.raises(CollectionError, match="has a collection already"):
        SqliteStore.create(sqlite.folder)
    sqlite.write(lambda db: db.run("UPDATE meta SET value = '99' WHERE name = 'format'"))
    with pytest.raises(CollectionError, match="has format 99"):
        SqliteStore.open(sqlite.folder)
    sqlite.close()
    sqlite.path.write_bytes(b"no database" * 1000)
    with pytest.raises(CollectionError, match="is damaged"):
        SqliteStore.open(sqlite.folder)


def _fill(store: Store, numbers: Iterable[int]) -> None:
    for number in numbers:
        row = f"{number:03}", "x" * 200_000
        store.write(lambda db, row=row: db.run("INSERT INTO unread (path, reason) VALUES (?, ?)", row))  # type: ignore[misc]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk_undoes_the_job_and_leaves_room_to_free(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=False).returncode:
        pytest.skip("cannot mount")
    try:
        store = SqliteStore.create(disk / "store")
        # Opened again, it keeps something for a full disk.
        _fill(store, range(3))
        store.close()
        with pytest.raises(NoRoomError, match=r"there is no room left for .*store: free"):
            _fill(store, range(3, 100))
        written = len(noted(store))
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(4096))
        with pytest.raises(NoRoomError):
            store.write(lambda db: db.run("DELETE FROM unread WHERE path < '005'"))
        store.write(lambda db: db.run("DELETE FROM unread WHERE path < '005'"), freeing=True)
        assert len(noted(store)) == written - 5
        store.close()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = tmp_path / "a share"
    mounts = tmp_path / "mtab"
    written = str(mounted).replace(" ", "\\040")
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nhost:/photos {written} nfs4 rw 0 0\n")
    monkeypatch.setattr(sqlite_module, "MOUNTS", mounts)
    with pytest.raises(CollectionError, match=r"network file system \(nfs4\).*postgresql://"):
        SqliteStore.create(mounted / "photos")
    SqliteStore.create(tmp_path / "here").close()
