from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from diptych.collection.storage.place import write_lock
from diptych.errors import CollectionBusyError

HOLD = """
import sys, time
from pathlib import Path
from diptych.collection.storage.place import write_lock
with write_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_one_writer_at_a_time_even_in_one_process(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    # Whoever may open the file can lock it: others must not.
    path.touch(0o755)
    with write_lock(path):
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(CollectionBusyError, match="being written"), write_lock(path):
            pass
        started = time.monotonic()
        with pytest.raises(CollectionBusyError), write_lock(path, wait=0.2):
            pass
        assert time.monotonic() - started >= 0.2
    with write_lock(path):
        pass


def test_a_writer_waits_for_the_one_before(tmp_path: Path) -> None:
    order = []

    def write() -> None:
        with write_lock(tmp_path / "write.lock", wait=60):
            order.append("second")

    with write_lock(tmp_path / "write.lock"):
        thread = Thread(target=write)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_ticket_is_locked_before_others_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen, real = tmp_path / "write.lock", [], os.fchmod

    def fchmod(descriptor: int, mode: int) -> None:
        """Between the making of a file and its lock."""
        seen.extend(tmp_path.glob("write.lock.*"))
        real(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", fchmod)
    with write_lock(path, wait=60):
        pass
    # The lock itself is taken with the ticket in hand.
    assert len(seen) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["write.lock"]


def test_whoever_came_first_is_first(tmp_path: Path) -> None:
    path, order = tmp_path / "write.lock", []
    # Of a process that ended while it stood in line.
    (tmp_path / f"write.lock.{0:020d}-1-1").touch()

    def write(number: int) -> None:
        for turn in range(2):
            with write_lock(path, wait=60):
                order.append((turn, number))
                if number == 0 and turn == 0:
                    everybody_waits.wait()

    def tickets() -> int:
        return len(list(tmp_path.glob("write.lock.*")))

    everybody_waits = Event()
    threads = [Thread(target=write, args=(number,)) for number in range(6)]
    for number, thread in enumerate(threads):
        thread.start()
        # The first one holds the lock, and the others wait for it.
        while (not order) if number == 0 else tickets() < number:
            time.sleep(0.001)
    everybody_waits.set()
    for thread in threads:
        thread.join()
    # Nobody had a second turn while somebody waited for the first.
    assert order[:6] == [(0, number) for number in range(6)]
    assert tickets() == 0


def test_a_killed_writer_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(CollectionBusyError, match=rf"\(-c, process {holder.pid}, since 20\d\d-.* UTC\)"),
        write_lock(path),
    ):
        pass
    holder.kill()
    holder.communicate()
    with write_lock(path):
        pass
