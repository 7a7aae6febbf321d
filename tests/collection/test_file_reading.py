"""Files read by processes give what threads give, and a process that dies costs nothing."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.collection import AddProgress, Collection, Record
from diptych.collection.changes import adding, encoding, file_reading, item_changes
from diptych.collection.changes.file_facts import FileRequest, hashed_file
from diptych.collection.changes.file_reading import FileReaders, ProcessWorkers, ReadFile, read_files
from diptych.encoders import EfficientNetLite
from diptych.encoders.image.reading_once import Square, held_square
from tests.doubles import ToyRetriever

SQUARES = Square(160), Square(64, "centre")


@pytest.fixture
def requests(tmp_path: Path) -> list[FileRequest]:
    rng = np.random.default_rng(0)
    for number in range(6):
        pixels = rng.integers(256, size=(40, 60, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8 not a picture")
    paths = [*sorted(tmp_path.iterdir()), tmp_path / "missing.png"]
    return [FileRequest(path, squares=SQUARES) for path in paths]


def same_as(expected: list[ReadFile], found: list[ReadFile]) -> None:
    for wanted, read in zip(expected, found, strict=True):
        if not isinstance(wanted, tuple):
            assert str(read) == str(wanted)
            continue
        for fact in ("st_size", "st_mtime_ns", "st_ino"):
            assert getattr(read[0], fact) == getattr(wanted[0], fact)
        assert read[1] == wanted[1]
        assert read[1].squares.keys() == wanted[1].squares.keys()
        for square, pixels in wanted[1].squares.items():
            np.testing.assert_array_equal(read[1].squares[square], pixels)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two processes read from the first file on."""
    monkeypatch.setattr(file_reading, "_MANY_FILES", 0)
    monkeypatch.setattr(file_reading, "_MOST_AT_ONCE", 2)
    monkeypatch.setattr(file_reading, "_LEAST_CORES", 1)
    monkeypatch.setattr(file_reading, "_uses_processes", True)


def test_pixels_that_are_left_uncut_are_sent_once(requests, processes) -> None:
    uncut = [replace(request, squares=(*SQUARES, Square(150)), uncut=True) for request in requests]
    with FileReaders() as readers:
        readers.expect(len(uncut))
        found = readers.read(uncut)
        same_as(read_files(uncut), found)
    for read in found[:6]:
        whole, middle, smaller = read[1].squares.values()
        assert whole is middle is smaller
        assert whole.shape == (40, 60, 3)


def test_processes_start_while_the_caller_goes_on(requests, processes, monkeypatch: pytest.MonkeyPatch) -> None:
    may_start = threading.Event()
    started = file_reading._started
    monkeypatch.setattr(file_reading, "_started", lambda folder: may_start.wait(60) and started(folder))
    with FileReaders() as readers:
        readers.expect_all(len(requests), [])
        assert multiprocessing.active_children() == []
        may_start.set()
        readers.expect(len(requests))
        assert len(multiprocessing.active_children()) == 2
        same_as(read_files(requests), readers.read(requests))
    with FileReaders() as readers:
        readers.expect_all(len(requests), [])
    assert multiprocessing.active_children() == []


def test_pixels_that_nobody_asks_for_leave_no_file(requests, processes, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(file_reading, "_MEMORY", tmp_path)
    with FileReaders() as readers:
        readers.expect(len(requests))
        found = readers.read(requests)
        (folder,) = tmp_path.glob("diptych-*")
        assert len(list(folder.iterdir())) == 1
        del found
        assert list(folder.iterdir()) == []


def test_pixels_that_are_gone_are_read_from_the_picture(requests, processes) -> None:
    encoder = EfficientNetLite(network="lite0", pixels=SQUARES[0].side)
    with FileReaders() as readers:
        readers.expect(len(requests))
        found = readers.read(requests)
        status, facts = found[0]
        file = hashed_file(requests[0].path, status, facts)
        sent = pickle.loads(pickle.dumps(file))
        assert (sent, sent.digest, sent.status) == (file, file.digest, file.status)
        np.testing.assert_array_equal(held_square(sent, SQUARES[0]), encoder.prepare(requests[0].path))
    assert held_square(file, SQUARES[0]) is None
    np.testing.assert_array_equal(encoder.prepare(file), encoder.prepare(requests[0].path))


def test_processes_read_what_threads_read_and_one_that_is_killed_costs_no_file(requests, processes) -> None:
    expected = read_files(requests)
    assert [isinstance(read, tuple) for read in expected] == [True] * 7 + [False]
    assert [len(read[1].squares) for read in expected[:7]] == [2] * 6 + [0]
    with FileReaders() as readers:
        readers.expect(len(requests))
        same_as(expected, readers.read(requests))
        started = list(readers._pool._processes)
        assert started
        assert os.getpid() not in started
        os.kill(started[0], signal.SIGKILL)
        # The other one may read all of it before anybody sees that one is gone.
        while readers._pool is not None:
            same_as(expected, readers.read(requests))
        same_as(expected, readers.read(requests))


def test_a_program_that_is_not_ours_starts_no_process(requests, processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reading, "_uses_processes", False)
    with FileReaders() as readers:
        readers.expect(len(requests))
        readers.read(requests)
        assert readers._pool is None


@pytest.mark.parametrize("memory", ["there", "missing", "full"])
def test_squares_go_through_memory_where_there_is_some(
    memory: str, requests, processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "memory"
    monkeypatch.setattr(file_reading, "_MEMORY", shared)
    if memory != "missing":
        shared.mkdir()
    if memory == "full":
        # A folder that is gone refuses files as one without room does.
        monkeypatch.setattr(file_reading, "_folder_in_memory", lambda: shared / "gone")
    with FileReaders() as readers:
        readers.expect(len(requests))
        found = readers.read(requests)
        same_as(read_files(requests), found)
        # Through memory, those of several files come in one piece.
        first, second = (read[1].squares[SQUARES[0]] for read in found[:2])
        assert (np.shares_memory(first.base, second.base)) == (memory == "there")
        if memory == "there":
            (folder,) = shared.iterdir()
            assert list(folder.iterdir()) == []
    assert not shared.exists() or list(shared.iterdir()) == []


def test_processes_stay_while_a_job_lets_others_write(
    collection: Collection, photos: Path, processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "_PICTURES_AT_ONCE", 4)
    monkeypatch.setattr(adding, "_MOST_PICTURES_AT_ONCE", 4)
    monkeypatch.setattr(item_changes, "_SHORTEST_PART", 0.0)
    for number in range(40):
        (photos / f"{number}.png").write_text(f"picture {number}")
    other = Collection.open(collection.folder, load_retriever=ToyRetriever.load, write_wait=60)
    reading: list[set[int | None]] = []
    written: list[Future[int]] = []
    pauses = [20, 8]

    def write() -> int:
        other.add([Record(captions=["small"])])
        return len(other)

    with ThreadPoolExecutor(1) as writer:

        def progress(told: AddProgress) -> None:
            if told.done:
                reading.append({child.pid for child in multiprocessing.active_children()})
            if pauses and told.done == pauses[-1]:
                pauses.pop()
                written.append(writer.submit(write))
                while not collection._state.is_awaited():
                    time.sleep(0.001)

        assert collection.add(photos, progress=progress).added == 43
    assert [future.result() for future in written] == [9, 21]
    assert len(reading[0]) == 2
    # Those of a part tell of what was done before it, too.
    assert len(reading) > 11
    assert all(started == reading[0] for started in reading)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("killed", [False, True])
def test_processes_that_encode_for_a_card_give_what_threads_give(
    killed: bool, collection: Collection, photos: Path, processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "_PICTURES_AT_ONCE", 4)
    monkeypatch.setattr(adding, "_MOST_PICTURES_AT_ONCE", 4)
    monkeypatch.setattr(file_reading, "encoding_processes", lambda: 2)
    for number in range(40):
        (photos / f"{number}.png").write_text(f"{'bad' if number == 7 else 'picture'} {number}")
    busy: set[int] = set()
    workers: list[ProcessWorkers] = []
    monkeypatch.setattr(
        file_reading, "ProcessWorkers", lambda count: workers.append(ProcessWorkers(count)) or workers[-1]
    )

    def progress(told: AddProgress) -> None:
        if told.done and workers[0]._pool._processes:
            busy.update(workers[0]._pool._processes)
            if killed and told.done == 8:
                os.kill(min(busy), signal.SIGKILL)

    report = collection.add(photos, progress=progress)
    assert (report.added, list(report.skipped)) == (42, [str(photos / "7.png")])
    assert len(busy) == 2
    assert multiprocessing.active_children() == []
    for path in set(photos.glob("*.png")) - {photos / "7.png"}:
        first = collection.search(path, k=1)[0]
        assert first.path == path
        assert first.score == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("free", "cores", "batches", "processes"),
    [(0, 16, 1, 1), (8 << 30, 16, 1, 1), (13 << 30, 16, 2, 2), (140 << 30, 16, 4, 4), (140 << 30, 8, 4, 2)],
)
def test_a_card_gets_as_many_batches_as_it_has_memory_for(
    free: int, cores: int, batches: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.collection.changes.encoding.uses_card", lambda: True)
    monkeypatch.setattr(encoding, "free_card_bytes", lambda: free)
    monkeypatch.setattr(encoding, "available_processors", lambda: cores)
    encoding._batches_on_card.cache_clear()
    try:
        assert (encoding.batches_at_once(), encoding.encoding_processes()) == (batches, processes)
    finally:
        encoding._batches_on_card.cache_clear()


def test_a_processor_encodes_where_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.collection.changes.encoding.uses_card", lambda: False)
    assert (encoding.batches_at_once(), encoding.encoding_processes()) == (1, 0)
