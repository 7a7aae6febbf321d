"""Decoding in processes of their own, which have bounds on memory and time: what goes wrong there ends there.

Each process of a program has a few of them, started when the first is needed and kept. Files are handed over as they
were opened, pixels come back. A decoder that crashes or runs over a bound costs its own picture; the next one gets a
new process.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe
from queue import LifoQueue
from typing import Any, BinaryIO

from diptych.cluster import available_processors
from diptych.errors import InvalidInputError

Answer = tuple[dict[str, Any], bytes]
MEMORY_BYTES = 900 * 2**20
_MAX_PROCESSES = 4
# Processor time is bounded over there; a machine may be so busy that it takes many times as long.
_PATIENCE = 15.0
# A process of multiprocessing would run the program's own main module again.
_PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import serve; serve({handle})"
_MODULE = "diptych.encoders.image.decoding_worker"
# Room for threads that nobody needs would count as memory.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def is_available() -> bool:
    """Return True if this system hands opened files to other processes, and this is none of those processes itself."""
    return hasattr(socket, "send_fds") and bool(sys.executable) and not _is_worker


_is_worker = False


def become_worker() -> None:
    """Decode here from now on."""
    global _is_worker
    _is_worker = True


def decode_elsewhere(task: str, file: BinaryIO, name: str, most_seconds: float, **arguments: Any) -> Answer:
    """Let a process do a task with a file in so much processor time; an error says why it did not."""
    request = {"task": task, "name": name, "most_seconds": most_seconds, **arguments}
    pool = _pool
    # The one that was used last, so that no more are started than are needed.
    process = pool.get()
    try:
        with _handle(file) as handle:
            answer, content = process.ask(request, handle)
            if answer.get("lacks_memory") and process.n_asked > 1:
                # Earlier pictures may have left too much there.
                process.end()
                answer, content = process.ask(request, handle)
    finally:
        pool.put(process)
    if "refusal" in answer:
        raise InvalidInputError(answer["refusal"])
    if "problem" in answer:
        raise ValueError(answer["problem"])
    return answer, content


@contextmanager
def _handle(file: BinaryIO) -> Iterator[int]:
    """Yield a file as the system knows it; one that is only in memory, or unpacked as it is read, is written out."""
    if type(getattr(file, "raw", file)) is io.FileIO:
        yield file.fileno()
        return
    with tempfile.TemporaryFile() as copy:
        file.seek(0)
        shutil.copyfileobj(file, copy)
        copy.flush()
        yield copy.fileno()


class _Process:
    """One process that decodes, started when it is first asked, and the line to it."""

    def __init__(self) -> None:
        self._started: subprocess.Popen[bytes] | None = None
        self._line: Connection | None = None
        self.n_asked = 0

    def _start(self) -> Connection:
        self._line, there = Pipe()
        with there:
            program = _PROGRAM.format(path=sys.path, module=_MODULE, handle=there.fileno())
            self._started = subprocess.Popen(
                [sys.executable, "-I", "-c", program],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ENVIRONMENT},
            )
        self.n_asked = 0
        return self._line

    def end(self) -> None:
        if self._line is not None:
            self._line.close()
        if self._started is not None:
            self._started.kill()
            self._started.wait()
        self._line = self._started = None

    def ask(self, request: dict[str, Any], handle: int) -> Answer:
        line = self._line
        if line is None or self._started is None or self._started.poll() is not None:
            self.end()
            line = self._start()
        self.n_asked += 1
        try:
            # What a broken decoder sends is read as JSON and bytes, and never unpickled.
            line.send_bytes(json.dumps(request).encode())
            with socket.fromfd(line.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as sender:
                socket.send_fds(sender, [b"f"], [handle])
            if not line.poll(_PATIENCE * request["most_seconds"]):
                raise TimeoutError
            return json.loads(line.recv_bytes()), line.recv_bytes()
        except (OSError, EOFError, ValueError):
            self.end()
            most = f"{request['most_seconds']:g} seconds of processor time or {MEMORY_BYTES // 2**20} MiB of memory"
            raise ValueError(f"decoding it takes more than {most}, or breaks the decoder") from None
        except BaseException:
            # After an interruption, half an answer may be on the line.
            self.end()
            raise


def _new_pool() -> LifoQueue[_Process]:
    pool: LifoQueue[_Process] = LifoQueue()
    for _ in range(min(_MAX_PROCESSES, available_processors())):
        pool.put(_Process())
    return pool


# As many processes as can compute at once, not too many; a thread that needs one waits until one is free.
_pool = _new_pool()


def end_processes() -> None:
    """End the processes that have nothing to do; new ones are started when they are needed."""
    for process in list(_pool.queue):
        process.end()


def _begin_anew() -> None:
    """Leave the processes to the program that this is a copy of."""
    global _pool
    _pool = _new_pool()


atexit.register(end_processes)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
