"""Running jobs one after the other, each in a process of its own."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO

from diptych.addresses import without_password
from diptych.collection.store.store import Store
from diptych.errors import CollectionBusyError, CollectionError
from diptych.service.jobs.store import Job, JobState, JobStore

POLL_SECONDS = 0.25
IDLE_SECONDS = 0.5
BEAT_SECONDS = 15.0
RETRY_SECONDS = 5.0
STOP_SECONDS = 3.0
COMMAND = [sys.executable, "-m", "diptych.service.jobs.work"]
_TAIL_BYTES = 4096
_log = logging.getLogger("diptych.service")


class JobRunner:
    """Runs jobs of a collection one at a time, each in a process of its own; other services may run the others.

    The process writes its progress and its end into the store. It can be stopped at any moment, because the store
    survives that, and it ends by itself when the service does, since its input closes then.
    """

    def __init__(self, collection: str, store: Store, root: Path | None = None) -> None:
        self.store = JobStore(store)
        self._collection = collection
        self._root = root
        self._is_stopping = threading.Event()
        self._is_asked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="diptych-jobs", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def wake(self) -> None:
        """Look for work now; it would be found a moment later anyway."""
        self._is_asked.set()

    def stop(self) -> None:
        """Interrupt what runs and return when it has ended; what waits goes on with the next start."""
        self._is_stopping.set()
        self._is_asked.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            self._is_asked.clear()
            try:
                job = self.store.claim()
                if job is None:
                    self._is_asked.wait(IDLE_SECONDS)
                else:
                    self._execute(job)
            except (CollectionError, OSError):
                # A full disk, or a database that is away for a while.
                _log.exception("jobs cannot be run now; trying again in %g s", RETRY_SECONDS)
                self._is_stopping.wait(RETRY_SECONDS)

    def _execute(self, job: Job) -> None:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                # Interrupting the service from a terminal must let it decide what becomes of its jobs.
                start_new_session=True,
            )
            try:
                state = self._follow(process, job)
            finally:
                # One that can no longer be followed must not go on beside the next.
                _end(process)
            error = None
            if state == "failed":
                error = f"The process of the job ended with status {process.returncode}: {_last_line(output)}"
        # A process that came to its end has written it; then this changes nothing.
        self.store.finish(job, state, error=error)
        ended = self.store.find(job.id)
        if ended is not None and ended.state == "failed":
            _log.error(
                "job %s (%s) of %s failed: %s", job.id, job.kind, without_password(self._collection), ended.error
            )

    def _follow(self, process: subprocess.Popen[bytes], job: Job) -> JobState:
        """Wait for the end of a process, or return how it is to be ended."""
        root = None if self._root is None else str(self._root)
        request = {"collection": self._collection, "root": root, "job": asdict(job)}
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        beaten = time.monotonic()
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
                break
            if time.monotonic() - beaten >= BEAT_SECONDS:
                beaten = time.monotonic()
                with suppress(CollectionBusyError):
                    self.store.beat(job)
            if self.store.is_to_cancel(job):
                return "cancelled"
            if self._is_stopping.is_set():
                return "interrupted"
        return "failed"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()


def _last_line(output: IO[bytes]) -> str:
    output.seek(max(0, output.seek(0, 2) - _TAIL_BYTES))
    lines = output.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "without a word")
