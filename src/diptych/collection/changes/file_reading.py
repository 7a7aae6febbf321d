"""Many files read at once: by threads, and on many cores by processes, because threads wait for each other."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import accumulate
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from diptych import own_process
from diptych.cluster import available_processors
from diptych.collection.changes.file_facts import FileFacts, FileRequest, file_facts, file_status
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders.image.reading_once import Square

ReadFile = tuple[os.stat_result, FileFacts] | InvalidInputError
Reader = Callable[[Sequence[FileRequest]], list[ReadFile]]

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


def read_files(requests: Sequence[FileRequest]) -> list[ReadFile]:
    """Read the facts of files, each with its status from before, or the reason why it cannot be read."""
    with ThreadPoolExecutor(min(_MOST_AT_ONCE, available_processors())) as pool:
        return list(pool.map(_read_file, requests))


class FileReaders:
    """Reads batch after batch of files, by processes once it was told of many; use it in ``with``.

    Processes are started for the files of our own programs alone: other programs may do things in their main module
    that a new process would repeat. A process that is killed, say for want of memory, costs no file: threads go on.
    """

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._folder: Path | None = None
        self._has_stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def expect(self, n_files: int) -> None:
        """Start processes if so many files are worth it, and there are none yet."""
        if self._pool is not None or self._has_stopped:
            return
        if n_files > _MANY_FILES and own_process.is_ours() and available_processors() >= _LEAST_CORES:
            self._folder = _folder_in_memory()
            self._pool = _started(self._folder)

    def read(self, requests: Sequence[FileRequest]) -> list[ReadFile]:
        """Read the facts of files, as `read_files` does."""
        if (pool := self._pool) is not None:
            parts = [requests[start : start + _FILES_A_TASK] for start in range(0, len(requests), _FILES_A_TASK)]
            try:
                return [file for files in pool.map(_sent_files, parts) for file in files.taken()]
            # Another thread that reads may have found the pool broken, and removed what lay in memory.
            except (BrokenProcessPool, FileNotFoundError):
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
    # Where it can be had, a server that has imported what is needed starts them with next to no work.
    context = multiprocessing.get_context("spawn" if sys.platform in ("win32", "darwin") else "forkserver")
    context.set_forkserver_preload([__name__, *_NEEDED])
    turns = context.BoundedSemaphore(_LARGE_PICTURES_AT_ONCE)
    n_processes = min(_MOST_AT_ONCE, available_processors())
    pool = ProcessPoolExecutor(n_processes, context, _begin, (turns, folder))
    # They start while networks are opened.
    for _ in range(n_processes):
        pool.submit(os.getpid)
    return pool


# Where this process lays down what is too large for a pipe.
_own_folder: Path | None = None


def _begin(large_pictures: Any, folder: Path | None) -> None:
    """Prepare a process: it leaves Ctrl-C to its parent, ends with it, and takes turns with large pictures."""
    from diptych.encoders.image import picture_decoding

    global _own_folder
    _own_folder = folder
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    picture_decoding.few_large_pictures_at_once = large_pictures
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        wait([parent.sentinel])
        _remove(_own_folder)
        os._exit(1)


@dataclass(frozen=True)
class _SentFiles:
    """What a process has read: squares lie one after another in a file in memory, where there is one.

    Through a pipe they would take longer than it takes to decode them. Those that are cut from the same pixels later
    lie there once.
    """

    files: list[ReadFile]
    squares: list[dict[Square, tuple[int, tuple[int, ...]]]] = field(default_factory=list)
    laid_down: Path | None = None

    def taken(self) -> list[ReadFile]:
        """Return the files with their squares, which share memory."""
        if self.laid_down is None:
            return self.files
        # Mapped page by page as it is used, it would take longer, and other threads would wait.
        pixels = np.fromfile(self.laid_down, dtype=np.uint8)
        self.laid_down.unlink()
        found = []
        for file, places in zip(self.files, self.squares, strict=True):
            # Squares that lie in the same place are the same object.
            cut = {
                start: pixels[start : start + np.prod(shape)].reshape(shape) for start, shape in set(places.values())
            }
            squares = {square: cut[start] for square, (start, _) in places.items()}
            found.append((file[0], replace(file[1], squares=squares)) if isinstance(file, tuple) else file)
        return found


def _sent_files(requests: Sequence[FileRequest]) -> _SentFiles:
    files = [_read_file(request) for request in requests]
    held = [file[1].squares if isinstance(file, tuple) else {} for file in files]
    if _own_folder is None or not any(held):
        return _SentFiles(files)
    arrays = {id(pixels): pixels for squares in held for pixels in squares.values()}
    starts = dict(zip(arrays, accumulate((pixels.size for pixels in arrays.values()), initial=0), strict=False))
    path = _own_folder / uuid.uuid4().hex
    try:
        with path.open("xb") as stream:
            stream.writelines(pixels.data for pixels in arrays.values())
    except OSError:
        # Containers have little of that memory.
        path.unlink(missing_ok=True)
        return _SentFiles(files)
    places = [{square: (starts[id(pixels)], pixels.shape) for square, pixels in squares.items()} for squares in held]
    left = [(file[0], replace(file[1], squares={})) if isinstance(file, tuple) else file for file in files]
    return _SentFiles(left, places, path)


def _read_file(request: FileRequest) -> ReadFile:
    try:
        return file_status(request.path), file_facts(request)
    except InvalidInputError as reason:
        return reason
