from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from diptych.collection import Collection, Record
from diptych.collection.store.sqlite import WRITE_LOCK, write_lock
from diptych.errors import CollectionBusyError
from tests.doubles import ToyRetriever

ROOT = Path(__file__).parents[2]


def open_again(collection: Collection) -> Collection:
    return Collection.open(collection.folder, load_retriever=ToyRetriever.load)


LONG_JOB = """
import sys
from diptych.collection import Collection, Record
from diptych.collection.indexing import adding
from tests.doubles import ToyRetriever
adding.TEXTS_AT_ONCE = 10
records = [Record(captions=[f"text {number}"], id=f"job-{number}") for number in range(1000)]
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
        other.add([Record(captions=["mine"], id=f"job-{999 - number}")])
    stored = {item.id for item in other.items()}
    assert "small-2" in stored
    assert len(stored) < 800
    told += job.communicate()[0].splitlines(keepends=True)
    assert job.returncode == 0
    assert told[-1] == "added 997 unchanged 0\n"
    done = [int(line.split()[0]) for line in told[:-1]]
    assert done == sorted(done)
    assert done[-1] == 1000
    assert {line.split()[1] for line in told[:-1]} == {"1000"}
    assert len(collection) == 1003
    assert collection["job-998"].captions == ("text 998",)
    assert collection.verify().is_whole


def test_a_writer_at_work_is_waited_for_and_named_and_nobody_waits_for_it_to_read(collection: Collection) -> None:
    collection.add([Record(captions=["one"], id="1")])
    other = Collection.open(collection.folder, load_retriever=ToyRetriever.load, write_wait=0.1)
    with write_lock(collection.folder / WRITE_LOCK):
        assert [answer.id for answer in other.search("one", target="texts")] == ["1"]
        with pytest.raises(CollectionBusyError, match=f"process {os.getpid()} "):
            other.add([Record(captions=["two"], id="2")])
        waiting = threading.Thread(target=collection.add, args=([Record(captions=["three"], id="3")],))
        waiting.start()
        assert len(other) == 1
    waiting.join()
    assert {item.id for item in other} == {"1", "3"}
    assert other.add([Record(captions=["two"], id="2")]).added == 1


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
    assert reader.search("text 1", k=1, target="texts")[0].score == pytest.approx(1, abs=1e-3)
    assert photos.exists()


def test_a_reader_that_looks_after_every_commit_misses_nothing(
    collection: Collection, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.collection.indexing.adding.TEXTS_AT_ONCE", 2)
    monkeypatch.setattr("diptych.collection.indexing.adding.PICTURES_AT_ONCE", 2)
    texts = [Record(captions=[f"text {number}"], id=str(number)) for number in range(5)]
    reader, n_looks = open_again(collection), 0

    def look(_: object = None) -> None:
        nonlocal n_looks
        n_looks += 1
        everything = list(open_again(collection))
        assert list(reader) == everything
        assert reader.items("kind:picture") == [item for item in everything if item.path]

    collection.add([photos, *texts], progress=look)
    (photos / "a.png").rename(photos / "z.png")
    (photos / "new.png").write_text("a new picture")
    records = [Record(captions=[f"other {number}"], id=str(number)) for number in (3, 1)]
    collection.add([records[0], Record(captions=["new"], id="new"), records[1], photos], progress=look)
    assert n_looks > 6
    collection.remove(["2", "b.png"])
    look()
    assert {item.path for item in reader if item.path} == {"z.png", "c.png", "new.png"}
    # Removed and added again it is the last one.
    collection.remove("4")
    collection.add(texts[4:])
    look()
    assert [item.id for item in reader][-1] == "4"


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
