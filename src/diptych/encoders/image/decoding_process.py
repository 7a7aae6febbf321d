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
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from diptych.cluster import available_processors
from diptych.errors import InvalidInputError

Answer = tuple[dict[str, Any], bytes]
MEMORY_BYTES = 900 * 2**20
_MOST_PROCESSES = 4
# Processor time is bounded over there; a machine may be so busy that it takes many times as long.
_PATIENCE = 15.0
_LENGTHS = struct.Struct(">IQ")
_PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import serve; serve({handle})"
_MODULE = "diptych.encoders.image.decoding_worker"
# Room for threads that nobody needs would count as memory.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def is_available() -> bool:
    """Say whether this system hands opened files to other processes, and this is none of those processes itself."""
    return hasattr(socket, "send_fds") and bool(sys.executable) and not _is_worker


_is_worker = False


def become_worker() -> None:
    """Decode here from now on."""
    global _is_worker
    _is_worker = True


def decode_elsewhere(task: str, file: BinaryIO, name: str, most_seconds: float, **arguments: Any) -> Answer:
    """Let a process do a task with a file in so much processor time; an error says why it did not."""
    request = {"task": task, "name": name, "most_seconds": most_seconds, **arguments}
    with _handle(file) as handle, _pool.process() as process:
        answer, content = process.ask(request, handle)
        if answer.get("lacks_memory") and process.n_asked > 1:
            # What others have left there may have been too much.
            process.end()
            answer, content = process.ask(request, handle)
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
    """One process that decodes, and the line to it."""

    def __init__(self) -> None:
        self._started: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self.n_asked = 0

    def _start(self) -> None:
        here, there = socket.socketpair()
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
        self._line, self.n_asked = here, 0

    def end(self) -> None:
        if self._line is not None:
            self._line.close()
        if self._started is not None:
            self._started.kill()
            self._started.wait()
        self._line = self._started = None

    def forget(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = self._started = None

    def ask(self, request: dict[str, Any], handle: int) -> Answer:
        if self._line is None or self._started is None or self._started.poll() is not None:
            self.end()
            self._start()
        assert self._line is not None
        self.n_asked += 1
        try:
            self._line.settimeout(_PATIENCE * request["most_seconds"])
            send(self._line, request, handle=handle)
            return receive(self._line)
        except OSError:
            self.end()
            most = f"{request['most_seconds']:g} seconds of processor time or {MEMORY_BYTES // 2**20} MiB of memory"
            raise ValueError(f"decoding it takes more than {most}, or breaks the decoder") from None
        except BaseException:
            # Whoever was interrupted leaves half an answer behind.
            self.end()
            raise


def send(line: socket.socket, document: dict[str, Any], content: bytes = b"", handle: int | None = None) -> None:
    """Send a document, with bytes that belong to it, and an opened file."""
    text = json.dumps(document).encode()
    message = _LENGTHS.pack(len(text), len(content)) + text
    if handle is None:
        line.sendall(message)
    else:
        sent = socket.send_fds(line, [message], [handle])
        line.sendall(message[sent:])
    line.sendall(content)


def receive(line: socket.socket, head: bytes = b"") -> Answer:
    """Return a document and its bytes; ``head`` has come already."""
    length, n_bytes = _LENGTHS.unpack(head + _exactly(line, _LENGTHS.size - len(head)))
    return json.loads(_exactly(line, length)), bytes(_exactly(line, n_bytes))


def receive_file(line: socket.socket) -> tuple[dict[str, Any], int] | None:
    """Return a document and the opened file that came with it; nothing when nobody is there any more."""
    head, handles, _, _ = socket.recv_fds(line, _LENGTHS.size, 1)
    return (receive(line, head)[0], handles[0]) if head and handles else None


def _exactly(line: socket.socket, length: int) -> bytearray:
    content = bytearray(length)
    view, done = memoryview(content), 0
    while done < length:
        received = line.recv_into(view[done:])
        if not received:
            raise ConnectionError("nobody is there any more")
        done += received
    return content


class _Pool:
    """As many processes as can compute at once, not too many; whoever needs one waits until one is free."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(min(_MOST_PROCESSES, available_processors()))
        self._idle: list[_Process] = []

    @contextmanager
    def process(self) -> Iterator[_Process]:
        with self._free:
            # The one that was used last, so that no more are started than are needed.
            try:
                process = self._idle.pop()
            except IndexError:
                process = _Process()
            try:
                yield process
            finally:
                self._idle.append(process)

    def end(self) -> None:
        while self._idle:
            self._idle.pop().end()


_pool = _Pool()


def _begin_anew() -> None:
    """Leave the processes to the program that this is a copy of."""
    global _pool
    for process in _pool._idle:
        process.forget()
    _pool = _Pool()


atexit.register(lambda: _pool.end())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
