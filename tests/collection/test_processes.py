from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diptych.collection import AddProgress, Collection, CollectionError, Item, Record
from tests.doubles import ToyRetriever

ROOT = Path(__file__).parents[2]


def open_again(collection: Collection) -> Collection:
    return Collection.open(collection.folder, load_retriever=ToyRetriever.load)


def test_one_writer_at_a_time(collection: Collection) -> None:
    other = open_again(collection)

    def write_too(progress: AddProgress) -> None:
        with pytest.raises(CollectionError, match="another process"):
            other.add([Record(captions=["too"])])

    collection.add([Record(captions=["first"])], progress=write_too)
    assert other.add([Record(captions=["too"])]).added == 1


LONG_JOB = """
import sys
from diptych.collection import Collection, Record
from diptych.collection.changes import adding, item_changes
from tests.doubles import ToyRetriever
adding._TEXTS_AT_ONCE = adding._MOST_TEXTS_AT_ONCE = 10
item_changes._SHORTEST_PART = 0.0
records = [Record(captions=[f"text {number}"], id=f"job-{number}") for number in range(300)]
with Collection.open(sys.argv[1], load_retriever=ToyRetriever.load) as collection:
    report = collection.add(records, progress=lambda told: print(told.done, told.total, flush=True))
print("added", report.added, "unchanged", report.unchanged, flush=True)
"""


def long_job(collection: Collection) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LONG_JOB, str(collection.folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_small_write_waits_for_one_part_of_a_long_job(collection: Collection) -> None:
    job = long_job(collection)
    assert job.stdout is not None
    told = [job.stdout.readline() for _ in range(3)]
    other = Collection.open(collection.folder, load_retriever=ToyRetriever.load, write_wait=60)
    for number in range(3):
        other.add([Record(captions=["small"], id=f"small-{number}")])
        # What the job was to add, and somebody else said first.
        other.add([Record(captions=["mine"], id=f"job-{299 - number}")])
    stored = {item.id for item in other.items()}
    assert "small-2" in stored
    assert len(stored) < 250
    told += job.communicate()[0].splitlines(keepends=True)
    assert job.returncode == 0
    assert told[-1] == "added 297 unchanged 0\n"
    done = [int(line.split()[0]) for line in told[:-1]]
    assert done == sorted(done)
    assert done[-1] == 300
    assert {line.split()[1] for line in told[:-1]} == {"300"}
    assert len(collection) == 303
    assert collection["job-298"].captions == ("text 298",)
    assert collection.verify().is_whole


def test_a_writer_that_stands_still_is_named_and_nobody_waits_for_it_to_read(collection: Collection) -> None:
    job = long_job(collection)
    assert job.stdout is not None
    for _ in range(3):
        job.stdout.readline()
    job.send_signal(signal.SIGSTOP)
    try:
        stored = len(collection)
        assert 10 <= stored < 300
        assert collection.search("text 3", k=1, target="texts")[0].id == "job-3"
        with pytest.raises(CollectionError, match=rf"process {job.pid}, since"):
            collection.add([Record(captions=["small"], id="small")])
        assert len(collection) == stored
    finally:
        job.send_signal(signal.SIGCONT)
    assert job.communicate()[0].splitlines()[-1] == "added 300 unchanged 0"
    collection.add([Record(captions=["small"], id="small")])
    assert len(collection) == 301
    assert collection.verify().is_whole


def test_whatever_the_clock_says_readers_miss_nothing(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, real, day = open_again(collection), time.time_ns, 86_400 * 10**9
    known: list[str] = []
    for number, days in enumerate((0, 400, -4000, -0.1, 1, 0)):
        monkeypatch.setattr(time, "time_ns", lambda days=days: real() + int(days * day))
        collection.add([Record(captions=[f"text {number}"], id=str(number)), Record(captions=["goes"], id="goes")])
        assert reader.search("goes", k=1, target="texts")[0].id == "goes"
        collection.remove("goes")
        collection.update("0", labels=[f"step {number}"])
        known.append(str(number))
        assert sorted(item.id for item in reader) == known
        assert reader["0"].labels == (f"step {number}",)
        assert [item.id for item in open_again(collection)] == [item.id for item in reader]
    assert collection.verify().is_whole


def test_a_reader_sees_the_changes_of_another(collection: Collection, photos: Path) -> None:
    reader = open_again(collection)
    assert len(reader.search("x", target="texts")) == 0
    for number in range(5):
        collection.add([Record(captions=[f"text {number}"], id=str(number))])
        assert reader.search(f"text {number}", k=1, target="texts")[0].id == str(number)
    collection.update("3", captions=["changed"])
    assert reader.search("changed", k=1, target="texts")[0].id == "3"
    collection.remove("3")
    assert reader.search("changed", k=9, target="texts").considered == 4
    collection.set_retriever(ToyRetriever(2))
    assert reader.search("text 1", k=1, target="texts")[0].score == pytest.approx(1, abs=1e-5)
    assert photos.exists()


def test_a_reader_reads_what_has_changed_and_no_more(
    collection: Collection, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add([photos, *(Record(captions=[f"text {number}"], id=str(number)) for number in range(50))])
    reader = open_again(collection)
    assert len(reader) == 53
    read: list[list[str]] = []
    changed_items = reader._state.store.changed_items

    def noted(since_ns: int, limit: int) -> list[Item] | None:
        found = changed_items(since_ns, limit)
        read.append(sorted(item.id for item in found or ()))
        return found

    monkeypatch.setattr(reader._state.store, "changed_items", noted)
    collection.update("5", captions=["other"])
    collection.remove(["6", "a.png"])
    collection.add([Record(captions=["new"], id="new")])
    assert list(reader) == list(open_again(collection))
    assert read == [["5", "new"]]
    # Removed and added again it is the last one.
    collection.remove("8")
    collection.add([Record(captions=["text 8"], id="8")])
    assert [item.id for item in reader][-1] == "8"
    assert list(reader) == list(open_again(collection))
    assert read[1:] == [["8"]]


def test_a_reader_that_looks_after_every_commit_misses_nothing(
    collection: Collection, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New and changed items of one batch, in any order: times of changes must grow with every commit."""
    collection.add([photos, *(Record(captions=[f"text {number}"], id=str(number)) for number in range(5))])
    reader = open_again(collection)
    store = collection._state.store

    def followed(commit: Callable[..., None]) -> Callable[..., None]:
        def work(*arguments: Any) -> None:
            commit(*arguments)
            list(reader)

        return work

    for name in ("put_items", "delete_items"):
        monkeypatch.setattr(store, name, followed(getattr(store, name)))
    (photos / "a.png").rename(photos / "z.png")
    (photos / "new.png").write_text("a new picture")
    records = [Record(captions=[f"other {number}"], id=str(number)) for number in (3, 1)]
    collection.add([records[0], Record(captions=["new"], id="new"), records[1], photos])
    collection.remove(["2", "b.png"])
    assert list(reader) == list(open_again(collection)) == list(collection)
    assert {item.path for item in reader if item.path} == {"z.png", "c.png", "new.png"}


def test_an_old_commit_is_not_taken_for_a_new_one(collection: Collection) -> None:
    """Once the folder of versions has settled a look costs no read, and a commit after that is still seen."""
    collection.add([Record(captions=["one"], id="1")])
    reader = open_again(collection)
    versions = reader._state.store.version_folder()
    os.utime(versions, ns=(10**18, 10**18))
    assert len(reader) == 1
    assert reader._state._is_current()
    collection.add([Record(captions=["two"], id="2")])
    assert len(reader) == 2


def test_a_reader_follows_a_retriever_that_goes_and_comes_back_without_points(collection: Collection) -> None:
    """Its handle of the dropped table leads nowhere, and no table has come in its place."""
    collection.add([Record(captions=["one"], id="1")])
    collection.add_retriever(ToyRetriever(2))
    reader = open_again(collection)
    assert reader.verify().is_whole
    assert [stored.missing for stored in reader.retrievers()] == [0, 0]
    collection.remove_retriever("toy 2")
    collection.remove("1")
    collection.add_retriever(ToyRetriever(2))
    assert reader.verify().is_whole
    assert [stored.missing for stored in reader.retrievers()] == [0, 0]
