"""Backups of the store: one moment, whole, and the way back."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from diptych.collection.store.dialect import Connection
from diptych.collection.store.opening import create_store, open_store
from diptych.collection.store.sqlite import DATABASE
from diptych.collection.store.store import Store
from diptych.collection.upkeep.backup import backup_collection, restore_collection
from diptych.collection.upkeep.checks import verify
from diptych.errors import CollectionError, InvalidInputError
from tests.collection.store.test_checks import HASHES, fill
from tests.doubles.postgres_server import USER, PostgresServer

TABLES = ("item", "caption", "content", "said", "thumbnail", "change", "value")


def note_two(db: Connection) -> None:
    db.many("INSERT INTO unread (path, reason) VALUES (?, '')", [(os.urandom(8).hex(),) for _ in range(2)])


def everything(store: Store) -> list[object]:
    with store.reading() as db:
        return [sorted(db.rows(f"SELECT * FROM {table}"), key=repr) for table in TABLES]


def test_a_backup_is_restored_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "photos" / ".diptych"
    store = open_store(create(folder))
    fill(store)
    expected = everything(store)
    end = threading.Event()

    def write() -> None:
        while not end.is_set():
            store.write(note_two)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        report = backup_collection(folder, tmp_path / "backup")
    finally:
        end.set()
        writer.join()
    assert (report.items, report.has_click_log) == (len(HASHES), False)
    assert sorted(path.name for path in report.target.iterdir()) == [DATABASE, "derived"]
    restored = restore_collection(report.target, tmp_path / "new" / ".diptych")
    assert (restored.items, restored.captions, restored.problems) == (len(HASHES), 2 * len(HASHES), ())
    copy = open_store(tmp_path / "new" / ".diptych")
    assert everything(copy) == expected
    with store.reading() as old, copy.reading() as new:
        n_written = int(new.value("SELECT count(*) FROM unread"))
        # Both rows of a job are in the backup, or none.
        assert n_written % 2 == 0
        query = "SELECT value FROM meta WHERE name = 'uuid'"
        assert old.value(query) != new.value(query)
    store.close()
    copy.close()


def create(folder: Path) -> Path:
    create_store(folder).close()
    return folder


def test_what_cannot_be_done_is_one_clear_error(tmp_path: Path) -> None:
    folder = create(tmp_path / "store")
    with pytest.raises(InvalidInputError, match="lies in the collection itself"):
        backup_collection(folder, folder / "backup")
    backup_collection(folder, tmp_path / "backup")
    with pytest.raises(InvalidInputError, match="exists already"):
        backup_collection(folder, tmp_path / "backup")
    for address in ((folder, "postgresql://host/db"), ("postgresql://host/db", folder)):
        for copy in (backup_collection, restore_collection):
            with pytest.raises(InvalidInputError, match="pg_dump"):
                copy(*address)
    copied = tmp_path / "backup" / DATABASE
    copied.write_bytes(copied.read_bytes()[:4096])
    with pytest.raises(CollectionError, match="is damaged"):
        restore_collection(tmp_path / "backup", tmp_path / "new")
    copied.unlink()
    with pytest.raises(CollectionError, match=f"{DATABASE} is missing"):
        restore_collection(tmp_path / "backup", tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "store"]


@pytest.mark.server
def test_a_dump_of_postgres_is_restored_by_its_own_programs(postgres_server: PostgresServer, tmp_path: Path) -> None:
    store = create_store(postgres_server.address("dumped"))
    fill(store)
    expected = everything(store)
    store.close()
    dump, server = postgres_server.folder / "dump", ("-h", postgres_server.folder, "-U", USER, "-d", USER)
    postgres_server.run("pg_dump", *server, "-Fc", "-n", "dumped", "-f", dump)
    postgres_server.run("psql", *server, "-c", "ALTER SCHEMA dumped RENAME TO original")
    postgres_server.run("pg_restore", *server, "--single-transaction", "--no-owner", dump)
    copy = open_store(postgres_server.address("dumped"))
    assert everything(copy) == expected
    assert verify(copy) == []
    copy.close()
