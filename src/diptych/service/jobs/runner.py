"""Running jobs one after the other, each in a process of its own."""

from __future__ import annotations

import collections
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from diptych.addresses import without_password
from diptych.collection.store.store import Store
from diptych.errors import CollectionBusyError, CollectionError, without_folders
from diptych.service.jobs.store import Job, JobStore

POLL_SECONDS = 0.5
PROGRESS_SECONDS = 1.0
BEAT_SECONDS = 15.0
RETRY_SECONDS = 5.0
_PATIENCE_SECONDS = 3.0
_LONGEST_LINE = 1 << 20
_LONGEST_MESSAGE = 500
_KEPT_LINES = 20
_log = logging.getLogger("diptych.service")


class JobProcess:
    """A job in a process of its own, which can be stopped at any moment because the store survives that.

    The process reports one JSON object per line; the last lines of its standard error explain a crash. It ends by
    itself when the service does, since its input closes then.
    """

    def __init__(self, collection: str, job: Job, root: Path | None = None) -> None:
        self.progress: tuple[int, int, str] = (0, 0, "starting")
        self.result: Mapping[str, Any] | None = None
        self.was_stopped = False
        self._failure: str | None = None
        self._last_lines: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._kill_at = float("inf")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "diptych.service.jobs.work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Interrupting the service from a terminal must let it decide what becomes of its jobs.
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(self._process.stdout, self._report), daemon=True),
            threading.Thread(target=self._read, args=(self._process.stderr, self._last_lines.append), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        named = None if root is None else str(root)
        request = {"collection": collection, "root": named, "kind": job.kind, "parameters": job.parameters}
        assert self._process.stdin is not None
        # The last lines of one that has ended already say why.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def error(self) -> str:
        """Why there is no result."""
        if self._failure is not None:
            return self._failure
        last = self._last_lines[-1].strip() if self._last_lines else "without a word"
        return f"The process of the job ended with status {self._process.returncode}: {last}"[:_LONGEST_MESSAGE]

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most that long, and say whether it has come."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            if time.monotonic() > self._kill_at:
                self._process.kill()
            return False
        for reader in self._readers:
            reader.join()
        return True

    def stop(self) -> None:
        """Ask the process to end, and end it should it not do so."""
        if not self.was_stopped:
            self.was_stopped = True
            self._kill_at = time.monotonic() + _PATIENCE_SECONDS
            self._process.terminate()

    @staticmethod
    def _read(stream: IO[bytes] | None, take: Any) -> None:
        assert stream is not None
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                take(line.decode("utf-8", "replace"))

    def _report(self, line: str) -> None:
        # Anything else is what a library printed; reports are ours alone.
        with suppress(ValueError, TypeError, KeyError):
            report = json.loads(line)
            if "result" in report:
                self.result = dict(report["result"])
            elif "error" in report:
                self._failure = str(report["error"])[:_LONGEST_MESSAGE]
            else:
                message = str(report["message"])[:_LONGEST_MESSAGE]
                self.progress = int(report["done"]), int(report["total"]), message


class JobRunner:
    """Runs jobs of a collection one at a time, each in a process of its own; other services may run the others."""

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
                    self._is_asked.wait(POLL_SECONDS)
                else:
                    self._execute(job)
            except (CollectionError, OSError):
                # A full disk, or a database that is away for a while.
                _log.exception("jobs cannot be run now; trying again in %g s", RETRY_SECONDS)
                self._is_stopping.wait(RETRY_SECONDS)

    def _execute(self, job: Job) -> None:
        process = JobProcess(self._collection, job, self._root)
        try:
            self._follow(process, job)
        finally:
            # One that can no longer be followed must not go on beside the next.
            process.stop()
            while not process.wait(POLL_SECONDS):
                pass

    def _follow(self, process: JobProcess, job: Job) -> None:
        last, last_at = process.progress, time.monotonic()
        while not process.wait(POLL_SECONDS / 2):
            ago = time.monotonic() - last_at
            if ago >= BEAT_SECONDS or (ago >= PROGRESS_SECONDS and process.progress != last):
                last, last_at = process.progress, time.monotonic()
                with suppress(CollectionBusyError):
                    self.store.beat(job, *last)
            if self._is_stopping.is_set() or self.store.is_to_cancel(job):
                process.stop()
        self.store.beat(job, *process.progress)
        if process.result is not None:
            # A wish to stop it came too late.
            self.store.finish(job, "done", result=process.result)
        elif process.was_stopped:
            self.store.finish(job, "cancelled" if self.store.is_to_cancel(job) else "interrupted")
        else:
            _log.error(
                "job %s (%s) of %s failed: %s", job.id, job.kind, without_password(self._collection), process.error
            )
            folder = Path(self._collection)
            self.store.finish(job, "failed", error=without_folders(process.error, folder, folder.parent))
