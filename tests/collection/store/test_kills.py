"""Nothing acknowledged is lost to a kill, of a writing process or of the whole server."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from diptych.collection.store.opening import create_store, open_store
from diptych.collection.store.store import Store
from diptych.collection.upkeep.checks import verify
from tests.doubles.postgres_server import PostgresServer

KILLS = 20
WRITER = """
import sys, threading
from diptych.collection.item import Item
from diptych.collection.store.writing import put_items
from diptych.collection.store.opening import open_store
store = open_store(sys.argv[1])
print('ready', flush=True)
def write(thread):
    for number in range(1_000_000):
        name = f'{sys.argv[2]}-{thread}-{number}'
        parts = [f'{name}-{part}' for part in range(2)]
        items = [Item(id=part, content_hash=None, path=f'{part}.jpg', labels=('dog', name)) for part in parts]
        store.write(lambda db: put_items(db, items))
        # One call: threads do not tear each other's lines.
        sys.stdout.write(name + chr(10)); sys.stdout.flush()
threads = [threading.Thread(target=write, args=(thread,)) for thread in range(2)]
[thread.start() for thread in threads]
"""


def killed_while_writing(place: str, trial: int, seconds: float) -> set[str]:
    """Return what a process said is written before it was killed, some time after the first."""
    command = [sys.executable, "-c", WRITER, place, str(trial)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        first = writer.stdout.readline()
        time.sleep(seconds)
        writer.kill()
        return whole_lines(first + writer.stdout.read())


def whole_lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines(keepends=True) if line.endswith("\n")}


def written(store: Store) -> set[str]:
    """Return the jobs whose items are there, all of them."""
    with store.reading() as db:
        names = {name for (name,) in db.rows("SELECT name FROM item")}
    jobs = {name.rpartition("-")[0] for name in names}
    assert names == {f"{job}-{part}" for job in jobs for part in range(2)}
    return jobs


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store")
    return str(request.getfixturevalue("postgres_address"))


def test_nothing_acknowledged_is_lost_to_a_killed_process(place: str) -> None:
    create_store(place).close()
    chosen = random.Random(5)
    acknowledged: set[str] = set()
    for trial in range(KILLS):
        acknowledged |= killed_while_writing(place, trial, chosen.uniform(0.01, 0.3))
        store = open_store(place)
        assert acknowledged <= written(store)
        # The next writer is not kept waiting by the dead one.
        store.write(lambda db: db.run("DELETE FROM unread"), wait=5)
        store.close()
    store = open_store(place)
    assert len(acknowledged) >= KILLS
    assert verify(store) == []
    store.close()


@pytest.mark.server
def test_nothing_acknowledged_is_lost_to_a_killed_server() -> None:
    server = PostgresServer()
    try:
        place = server.address("kills")
        store = create_store(place)
        acknowledged: set[str] = set()
        command = [sys.executable, "-c", WRITER, place]
        for trial in range(5):
            with subprocess.Popen(
                [*command, str(trial)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            ) as writer:
                assert writer.stdout is not None
                writer.stdout.readline()
                time.sleep(0.2)
                server.kill()
                server.start()
                # The writer goes on by itself, or says that it could not.
                time.sleep(0.3)
                writer.kill()
                acknowledged |= whole_lines(writer.stdout.read())
            # So does a store that was open all the time.
            assert acknowledged <= written(store)
        assert len(acknowledged) > 5
        store.close()
    finally:
        server.close()
