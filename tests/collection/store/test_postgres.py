"""What only a server does: connections break, others hold the lock, and settings are checked."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.collection.store.opening import create_store, open_store
from diptych.collection.store.store import Store
from diptych.errors import CollectionBusyError, CollectionError, InvalidInputError, UnknownRetrieverError
from tests.doubles.postgres_server import PostgresServer

psycopg = pytest.importorskip("psycopg")
postgres = pytest.importorskip("diptych.collection.store.postgres")

KEEP_LOCK = """
import sys, time
from diptych.collection.store.opening import open_store
def job(db):
    db.run("INSERT INTO unread (path, reason) VALUES ('lost', '')")
    print('locked', flush=True)
    time.sleep(60)
open_store(sys.argv[1]).write(job)
"""


@pytest.fixture
def opened(postgres_address: str) -> Iterator[Store]:
    made = create_store(postgres_address)
    yield made
    made.close()


def note(store: Store, name: str) -> None:
    store.write(lambda db: db.run("INSERT INTO unread (path, reason) VALUES (?, '')", (name,)))


def noted(store: Store) -> list[str]:
    with store.reading() as db:
        return [path for (path,) in db.rows("SELECT path FROM unread ORDER BY path")]


def end_connections(server: PostgresServer) -> None:
    """End all connections but our own, as an administrator does."""
    with psycopg.connect(server.address("other").partition("&schema")[0], autocommit=True) as raw:
        raw.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def test_an_address_is_printed_without_its_password() -> None:
    store = postgres.PostgresStore("postgresql://me:secret@no.such.host.invalid:1/db?schema=photos")
    assert store.place == "postgresql://me@no.such.host.invalid:1/db?schema=photos"
    for wrong in ("postgresql://me:secret@h/db?schema=A b", "postgresql://me:secret@h/db?nonsense=1"):
        with pytest.raises(InvalidInputError) as caught:
            postgres.PostgresStore(wrong)
        assert "secret" not in str(caught.value)


def test_points_that_go_within_a_transaction_are_those_of_a_removed_search_model(opened: Store) -> None:
    with pytest.raises(UnknownRetrieverError, match=r"removed from .* meanwhile; try again"), opened.reading() as db:
        db.rows("SELECT max(id) FROM point_7_text")


def test_a_server_that_does_not_answer_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "CONNECT_TRIES_S", (0.0,))
    with pytest.raises(
        CollectionBusyError, match=r"me@127.0.0.1:1/db\?schema=s cannot be reached .*PGPASSWORD"
    ) as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/db?schema=s")
    assert "secret" not in str(caught.value)


@pytest.mark.server
def test_who_writes_is_named_and_its_death_frees_the_lock(opened: Store, postgres_address: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KEEP_LOCK, postgres_address], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(CollectionBusyError, match=rf"process {other.pid} on .* has been writing to "):
            opened.write(lambda db: None, wait=0.1)
        other.kill()
    note(opened, "a")
    assert noted(opened) == ["a"]


@pytest.mark.server
def test_a_job_that_stands_still_is_cut_off(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "IDLE_IN_JOB_S", 1)

    def job(db: Any) -> None:
        time.sleep(4)
        db.run("INSERT INTO unread (path, reason) VALUES ('late', '')")

    with pytest.raises(CollectionBusyError, match="cannot be reached"):
        opened.write(job)
    assert noted(opened) == []


@pytest.mark.server
def test_idle_connections_that_broke_are_replaced(opened: Store, postgres_server: PostgresServer) -> None:
    note(opened, "a")
    end_connections(postgres_server)
    assert noted(opened) == ["a"]
    end_connections(postgres_server)
    assert opened.last_change() == 0
    end_connections(postgres_server)
    note(opened, "b")
    assert noted(opened) == ["a", "b"]


class Breaking:
    """A connection that is lost at the commit, before it reaches the server or with the answer."""

    def __init__(self, raw: Any, *, is_done: bool) -> None:
        self._raw = raw
        self._is_done = is_done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, sql: str, *arguments: Any, **options: Any) -> Any:
        if sql != "COMMIT":
            return self._raw.execute(sql, *arguments, **options)
        if self._is_done:
            self._raw.execute(sql)
        self._raw.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")


@pytest.mark.server
@pytest.mark.parametrize("is_done", [True, False])
def test_a_connection_lost_at_the_commit_leaves_the_job_done_once(opened: Store, is_done: bool) -> None:
    runs = []

    def job(db: Any) -> str:
        runs.append(db)
        db.run("INSERT INTO unread (path, reason) VALUES ('a', '')")
        if len(runs) == 1:
            db.raw = Breaking(db.raw, is_done=is_done)
        return "done"

    assert opened.write(job) == "done"
    assert len(runs) == (1 if is_done else 2)
    assert noted(opened) == ["a"]


@pytest.mark.server
def test_a_replica_answers_with_all_that_we_have_written(postgres_server: PostgresServer) -> None:
    replica = PostgresServer(postgres_server)
    try:
        store = create_store(postgres_server.address("copied"), replica=replica.address("copied"))
        for number in range(20):
            note(store, f"{number:02}")
            with store.reading(replica=True) as db:
                assert db.value("SELECT count(*) FROM unread") == number + 1
        with store.reading(replica=True) as db:
            assert db.value("SELECT pg_is_in_recovery()") is True
        with store.reading() as db:
            assert db.value("SELECT pg_is_in_recovery()") is False
        # Without it the primary answers.
        replica.kill()
        with store.reading(replica=True) as db:
            assert db.value("SELECT count(*) FROM unread") == 20
        store.close()
    finally:
        replica.start()
        replica.close()


@pytest.mark.server
def test_settings_that_lose_acknowledged_changes_are_refused(
    opened: Store, postgres_address: str, postgres_server: PostgresServer
) -> None:
    unsafe = f"{postgres_address}&options=-c%20synchronous_commit%3Doff"
    with pytest.raises(CollectionError, match="synchronous_commit = off"):
        open_store(unsafe)
    open_store(unsafe, "process").close()
    with pytest.raises(CollectionError, match="has a collection already"):
        create_store(postgres_address)
    with pytest.raises(CollectionError, match="has no collection"):
        open_store(postgres_server.address("nothing"))


@pytest.mark.server
def test_checksums_that_are_off_are_a_warning(opened: Store) -> None:
    with opened.reading() as db:
        is_on = db.value("SHOW data_checksums") == "on"
    assert is_on is not any("pg_checksums --enable" in warning for warning in opened.warnings())


@pytest.mark.server
def test_values_are_those_of_sqlite(opened: Store) -> None:
    with opened.reading() as db:
        (row,) = db.rows("SELECT sum(n), avg(n), count(*), max(n) FROM (VALUES (1::bigint), (2)) AS t (n)")
        assert row == (3, 1.5, 2, 2)
        assert [type(value) for value in row] == [int, float, int, int]
        assert db.ids("SELECT n FROM (VALUES (3), (NULL), (1)) AS t (n) WHERE ? = 5", (5,)).tolist() == [3, 1]
        assert db.ids("SELECT 1 WHERE 1 = 0").tolist() == []
        condition, values = db.among("n", [])
        assert db.rows(f"SELECT n FROM (VALUES (3)) AS t (n) WHERE {condition}", values) == []
        condition, values = db.among("n", [3, 2**40])
        assert db.rows(
            f"SELECT n FROM (VALUES (3), (4)) AS t (n) WHERE {condition} AND n % 2 = ?", (*values, True)
        ) == [(3,)]
        assert db.rows("SELECT 'a?%' WHERE 'b%' = ?", ("b%",)) == [("a?%",)]
