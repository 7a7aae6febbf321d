"""Many files at once: read by threads, and on many cores read and encoded by processes, as threads wait for others."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from itertools import accumulate
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Self, TypeVar

from diptych.cluster import MappingWorkers, Workers, available_processors, begun_early
from diptych.collection.changes.encoding import Sources, encoding_processes, open_networks
from diptych.collection.changes.file_facts import FileFacts, FileRequest, file_facts, file_status
from diptych.errors import InvalidInputError

ReadFile = tuple[os.stat_result, FileFacts] | InvalidInputError
Reader = Callable[[Sequence[FileRequest]], list[ReadFile]]
Task = TypeVar("Task")
Result = TypeVar("Result")

_MOST_AT_ONCE = 16
# Two or three threads keep each other from running for a small share of the time, sixteen for most of it.
_LEAST_CORES = 4
# Threads read as many in the time that processes take to start.
_MANY_FILES = 256
_FILES_A_TASK = 8
_LARGE_PICTURES_AT_ONCE = 3
# Files here lie in memory.
_MEMORY = Path("/dev/shm")
_NEEDED = ("diptych.encoders.image.picture_facts", "diptych.encoders.image.picture_decoding")


_uses_processes = False


def use_processes() -> None:
    """Let this process start others that read files; only a program with an importable main module may call it."""
    global _uses_processes
    _uses_processes = True


def read_files(requests: Sequence[FileRequest]) -> list[ReadFile]:
    """Read the facts of files, each with its status from before, or the reason why it cannot be read."""
    with ThreadPoolExecutor(min(_MOST_AT_ONCE, available_processors())) as pool:
        return list(pool.map(_read_file, requests))


class FileReaders:
    """Reads batch after batch of files, by processes once it was told of many; use it in ``with``.

    Where a graphics card encodes them, that needs processes of its own, or it would wait for all other Python.

    Processes are started for the files of our own programs alone: other programs may do things in their main module
    that a new process would repeat. A process that is killed, say for want of memory, costs no file: threads go on.
    """

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._folder: Path | None = None
        self._has_stopped = False
        self._encoders: ProcessWorkers | None = None
        self._starting: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self._wait_for_start()
        finally:
            if self._encoders is not None:
                self._encoders.stop()
            self._stop()

    def expect_all(self, n_files: int, sources: Sources) -> None:
        """Start what reads and what encodes so many files, while the caller finds out what is to be done with each."""
        self._wait_for_start()
        if self._is_worth(n_files):
            starter = ThreadPoolExecutor(1)
            self._starting = starter.submit(self._start, sources)
            starter.shutdown(wait=False)

    def encoders(self, workers: Workers) -> MappingWorkers:
        """Return who is to encode what is read: ``workers`` or, where processes read for a graphics card, others."""
        return workers if workers.elsewhere or self._encoders is None else self._encoders

    def expect(self, n_files: int) -> None:
        """Start processes if so many files are worth it, and there are none yet."""
        self._wait_for_start()
        if self._is_worth(n_files):
            self._start()

    def _is_worth(self, n_files: int) -> bool:
        has_begun = self._pool is not None or self._has_stopped
        is_much = n_files > _MANY_FILES and available_processors() >= _LEAST_CORES
        return is_much and not has_begun and _uses_processes

    def _start(self, sources: Sources | None = None) -> None:
        self._folder = _folder_in_memory()
        self._pool = _started(self._folder)
        if n_encoders := encoding_processes():
            self._encoders = ProcessWorkers(n_encoders)
            if sources is not None:
                self._encoders.start(open_networks, sources)

    def _wait_for_start(self) -> None:
        if self._starting is not None:
            self._starting.result()
            self._starting = None

    def read(self, requests: Sequence[FileRequest]) -> list[ReadFile]:
        """Read the facts of files, as `read_files` does."""
        if (pool := self._pool) is not None:
            parts = [requests[start : start + _FILES_A_TASK] for start in range(0, len(requests), _FILES_A_TASK)]
            try:
                return [file for files in pool.map(_sent_files, parts) for file in files]
            except BrokenProcessPool:
                self._stop()
        return read_files(requests)

    def _stop(self) -> None:
        pool, self._pool, self._has_stopped = self._pool, None, True
        if pool is not None:
            pool.shutdown(cancel_futures=True)
        _remove(self._folder)


def _folder_in_memory() -> Path | None:
    try:
        return Path(tempfile.mkdtemp(prefix="diptych-", dir=_MEMORY))
    except OSError:
        return None


def _remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _started(folder: Path | None) -> ProcessPoolExecutor:
    context = _context()
    turns = context.BoundedSemaphore(_LARGE_PICTURES_AT_ONCE)
    n_processes = min(_MOST_AT_ONCE, available_processors())
    pool = ProcessPoolExecutor(n_processes, context, _begin, (turns, folder))
    # They start while networks are opened.
    for _ in range(n_processes):
        pool.submit(os.getpid)
    return pool


def _context() -> Any:
    """Return how to start processes: where it can be had, by a server that has imported what is needed to read."""
    context = multiprocessing.get_context("spawn" if sys.platform in ("win32", "darwin") else "forkserver")
    context.set_forkserver_preload([__name__, *_NEEDED])
    return context


def _begin_process(at_end: Callable[[], object] = int) -> None:
    """Prepare a process that works for another: it leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(at_end,), daemon=True).start()


def _end_with_parent(at_end: Callable[[], object]) -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        wait([parent.sentinel])
        at_end()
        os._exit(1)


# Where this process lays down what is too large for a pipe.
_own_folder: Path | None = None


def _begin(large_pictures: Any, folder: Path | None) -> None:
    """Prepare a process, which takes turns with large pictures."""
    from diptych.encoders.image import picture_decoding

    global _own_folder
    _own_folder = folder
    picture_decoding.few_large_pictures_at_once = large_pictures
    _begin_process(at_end=partial(_remove, folder))


def _sent_files(requests: Sequence[FileRequest]) -> list[ReadFile]:
    """Read files for another process: squares lie one after another in a file in memory, where there is one.

    Through a pipe they would take longer than it takes to decode them. Those that are cut from the same pixels later
    lie there once.
    """
    from diptych.encoders.image.reading_once import LaidDownPixels, LaidDownSquares

    files = [_read_file(request) for request in requests]
    held = [file[1].squares if isinstance(file, tuple) else {} for file in files]
    if _own_folder is None or not any(held):
        return files
    arrays = {id(pixels): pixels for squares in held for pixels in squares.values()}
    starts = dict(zip(arrays, accumulate((pixels.size for pixels in arrays.values()), initial=0), strict=False))
    path = _own_folder / uuid.uuid4().hex
    try:
        with path.open("xb") as stream:
            stream.writelines(pixels.data for pixels in arrays.values())
    except OSError:
        # Containers have little of that memory.
        path.unlink(missing_ok=True)
        return files
    laid_down = LaidDownPixels(path)
    places = [{square: (starts[id(pixels)], pixels.shape) for square, pixels in squares.items()} for squares in held]
    return [
        (file[0], replace(file[1], squares=LaidDownSquares(laid_down, there))) if isinstance(file, tuple) else file
        for file, there in zip(files, places, strict=True)
    ]


def _read_file(request: FileRequest) -> ReadFile:
    try:
        return file_status(request.path), file_facts(request)
    except InvalidInputError as reason:
        return reason


class ProcessWorkers:
    """Processes of this machine that do one task each at a time: threads of one process wait for each other's Python.

    The processes stay for later tasks that share the same, until :meth:`stop`. Where one is killed, say for want of
    memory, no task is lost: this process does those that are left.
    """

    elsewhere = False

    def __init__(self, n_processes: int) -> None:
        self._n_processes = n_processes
        self._pool: ProcessPoolExecutor | None = None
        self._shared: tuple[Any, ...] = ()
        self._lock = threading.Lock()
        self._starter: threading.Thread | None = None

    def map(self, function: Callable[..., Result], tasks: Iterable[Task], *shared: Any) -> Iterator[Result]:
        """Yield the results in the order of the tasks."""
        # Tasks are asked for while the processes start.
        starts = ((task, _submitted(self._started(shared), function, task)) for task in tasks)
        for task, future in begun_early(starts, lambda: 2 * self._n_processes):
            try:
                result = future.result()
            except BrokenProcessPool:
                result = function(task, *shared)
            yield result

    def start(self, begin: Callable[..., object], *shared: Any) -> None:
        """Let processes for tasks that share this begin with ``begin(*shared)``, and wait for none of them."""
        self._starter = threading.Thread(target=self._start, args=(begin, shared))
        self._starter.start()

    def _start(self, begin: Callable[..., object], shared: tuple[Any, ...]) -> None:
        for _ in range(self._n_processes):
            _submitted(self._started(shared), _begun, begin)

    def _started(self, shared: tuple[Any, ...]) -> ProcessPoolExecutor:
        with self._lock:
            if self._pool is None or shared != self._shared:
                self._end()
                self._shared = shared
                self._pool = ProcessPoolExecutor(self._n_processes, _context(), _begin_tasks, shared)
            return self._pool

    def stop(self) -> None:
        """End the processes, after the tasks that they are at."""
        if self._starter is not None:
            self._starter.join()
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _submitted(pool: ProcessPoolExecutor, function: Callable[..., Result], task: Any) -> Future[Result]:
    try:
        return pool.submit(_with_shared, function, task)
    except BrokenProcessPool as broken:
        future = Future[Result]()
        future.set_exception(broken)
        return future


# What all tasks of this process share.
_shared_by_tasks: tuple[Any, ...] = ()


def _begin_tasks(*shared: Any) -> None:
    global _shared_by_tasks
    _shared_by_tasks = shared
    _begin_process()


def _begun(begin: Callable[..., object], *shared: Any) -> None:
    begin(*shared)


def _with_shared(function: Callable[..., Result], task: Any) -> Result:
    return function(task, *_shared_by_tasks)
