"""Many files read at once: by threads, and on many cores by processes, because threads wait for each other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any, Self

from diptych import own_process
from diptych.cluster import available_processors
from diptych.collection.changes.file_facts import FileFacts, FileRequest, file_facts, file_status
from diptych.errors import InvalidInputError

ReadFile = tuple[os.stat_result, FileFacts] | InvalidInputError
Reader = Callable[[Sequence[FileRequest]], list[ReadFile]]

_MOST_AT_ONCE = 16
# Two or three threads keep each other from running for a small share of the time, sixteen for most of it.
_LEAST_CORES = 4
# Threads have read so many files by the time that processes have started.
_MANY_FILES = 512
_FILES_A_TASK = 8
_LARGE_PICTURES_AT_ONCE = 3
_NEEDED = ("diptych.encoders.image.picture_facts", "diptych.encoders.image.picture_decoding")


def read_files(requests: Sequence[FileRequest]) -> list[ReadFile]:
    """Read the facts of files, each with its status from before, or the reason why it cannot be read."""
    with ThreadPoolExecutor(min(_MOST_AT_ONCE, available_processors())) as pool:
        return list(pool.map(_read_file, requests))


class FileReaders:
    """Reads batch after batch of files; use it in ``with``.

    Processes are started for the files of our own programs alone: other programs may do things in their main module
    that a new process would repeat. A process that is killed, say for want of memory, costs no file: threads go on.
    """

    def __init__(self) -> None:
        self._n_read = 0
        self._pool: ProcessPoolExecutor | None = None
        self._may_start = own_process.is_ours() and available_processors() >= _LEAST_CORES

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def read(self, requests: Sequence[FileRequest]) -> list[ReadFile]:
        """Read the facts of files, as `read_files` does."""
        self._n_read += len(requests)
        if self._may_start and self._pool is None and self._n_read > _MANY_FILES:
            self._pool = _started()
        if self._pool is not None:
            try:
                return list(self._pool.map(_read_file, requests, chunksize=_FILES_A_TASK))
            except BrokenProcessPool:
                self._stop()
        return read_files(requests)

    def _stop(self) -> None:
        self._may_start = False
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _started() -> ProcessPoolExecutor:
    # Where it can be had, a server that has imported what is needed starts them with next to no work.
    context = multiprocessing.get_context("spawn" if sys.platform in ("win32", "darwin") else "forkserver")
    context.set_forkserver_preload([__name__, *_NEEDED])
    turns = context.BoundedSemaphore(_LARGE_PICTURES_AT_ONCE)
    return ProcessPoolExecutor(min(_MOST_AT_ONCE, available_processors()), context, _begin, (turns,))


def _begin(large_pictures: Any) -> None:
    """Prepare a process: it leaves Ctrl-C to its parent, ends with it, and takes turns with large pictures."""
    from diptych.encoders.image import picture_decoding

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    picture_decoding.few_large_pictures_at_once = large_pictures
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        wait([parent.sentinel])
        os._exit(1)


def _read_file(request: FileRequest) -> ReadFile:
    try:
        return file_status(request.path), file_facts(request)
    except InvalidInputError as reason:
        return reason
