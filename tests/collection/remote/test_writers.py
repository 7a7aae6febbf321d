"""One writer at a time: leases that end, and writers that were paused and wake up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diptych.collection import AddProgress, Collection, Record
from diptych.collection.remote import bucket, place
from diptych.errors import CollectionBusyError

Machine = Callable[..., Collection]

# A writer that says when it has stored its first batch, and whether the second one was refused.
WRITER = """
import sys
import time

from kill_trials import ToyRetriever

from diptych.collection import Collection, Record
from diptych.collection.changes import adding
from diptych.collection.remote import bucket
from diptych.errors import CollectionBusyError

bucket.LEASE_SECONDS, bucket._RENEWED_EVERY = 1.0, 0.25
adding._TEXTS_AT_ONCE = 1


def stored(step):
    if step.stored:
        print("stored", *step.stored, flush=True)
        time.sleep(0.5)


with Collection.open(sys.argv[1], load_retriever=ToyRetriever.load, write_wait=20) as collection:
    try:
        collection.add([Record(captions=[f"text {n}"], id=f"paused-{n}") for n in range(50)], progress=stored)
        print("done", flush=True)
    except CollectionBusyError as problem:
        print("refused", problem, flush=True)
"""


@pytest.fixture(autouse=True)
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(bucket, "_RENEWED_EVERY", 0.25)
    monkeypatch.setattr(place, "FOLLOW_SECONDS", 0.1)


@contextmanager
def writer(address: str, cache: Path) -> Iterator[subprocess.Popen[str]]:
    benchmarks = Path(__file__).parents[3] / "benchmarks"
    path = os.pathsep.join([str(benchmarks), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": path}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, address], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_writer_that_was_paused_cannot_commit_when_it_wakes_up(
    address: str, machine: Machine, tmp_path: Path
) -> None:
    with machine("first", create=True) as first, writer(address, tmp_path / "paused") as paused:
        assert paused.stdout is not None
        acknowledged = {paused.stdout.readline().split()[1] for _ in range(2)}
        with machine("hasty", write_wait=0.0) as hasty, pytest.raises(CollectionBusyError, match="is being written by"):
            hasty.add([Record(captions=["too early"], id="early")])
        paused.send_signal(signal.SIGSTOP)
        first.add([Record(captions=["taken over"], id="over")])
        seen = {item.id for item in first}
        assert acknowledged | {"over"} <= seen
        paused.send_signal(signal.SIGCONT)
        lines = paused.stdout.read().splitlines()
        assert lines[-1].startswith("refused another writer has taken over"), lines
        # At most the one that was under way when it was paused had been committed before.
        later = {line.split()[1] for line in lines if line.startswith("stored")}
        assert later <= seen
        first.add([Record(captions=["later"], id="later")])
        with machine("second") as second:
            assert {item.id for item in second} == seen | {"later"}
            assert second.verify().is_whole


def test_a_machine_reads_what_it_is_writing(machine: Machine) -> None:
    """What is acknowledged is there for the others on the machine, who do not wait for the end of the addition."""
    with machine("first", create=True) as first:
        seen = []

        def look(progress: AddProgress) -> None:
            if progress.stored:
                with machine("first") as other:
                    seen.append({item.id for item in other} >= set(progress.stored))

        first.add([Record(captions=[f"text {number}"]) for number in range(3)], progress=look)
        assert seen
        assert all(seen)


def test_a_killed_writer_is_followed_by_one_of_its_machine_at_once_and_by_others_after_its_lease(
    address: str, machine: Machine, tmp_path: Path
) -> None:
    machine("first", create=True).close()
    for other in ("killed", "first"):
        with writer(address, tmp_path / "killed") as killed:
            assert killed.stdout is not None
            while not (line := killed.stdout.readline()).startswith("stored"):
                assert line
            killed.kill()
            killed.wait()
            acknowledged = line.split()[1]
        with machine(other) as next_one:
            assert acknowledged in next_one
            next_one.add([Record(captions=["next"], id=f"next-{other}")])
            next_one.remove([item.id for item in next_one if item.id.startswith("paused")])
            assert next_one.verify().is_whole
    with machine("second") as second:
        assert {item.id for item in second} == {"next-killed", "next-first"}
