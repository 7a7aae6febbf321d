from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from diptych.collection.storage.layout import write_lock
from diptych.errors import CollectionBusyError

HOLD = """
import sys, time
from pathlib import Path
from diptych.collection.storage.layout import write_lock
with write_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_one_writer_at_a_time_even_in_one_process(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    # As a former writer has left it.
    path.touch()
    with write_lock(path):
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


def test_a_killed_writer_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(CollectionBusyError), write_lock(path):
        pass
    holder.kill()
    holder.communicate()
    with write_lock(path):
        pass
