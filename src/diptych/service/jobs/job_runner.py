"""Running jobs one after the other, each in a process of its own."""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path

from diptych.collection import CollectionError
from diptych.collection.write_lock import write_lock
from diptych.service.jobs.job import Job
from diptych.service.jobs.job_process import JobProcess
from diptych.service.jobs.job_store import JobStore

_POLL_SECONDS = 0.5
_RETRY_SECONDS = 5.0
_log = logging.getLogger("diptych.service")


class JobRunner:
    """Runs the jobs of one collection one at a time.

    Only one runner works on a collection at any time, whichever process it lives in: it holds a lock, and the others
    wait for it. Jobs that were running when it begins belonged to one that has ended, so they are interrupted.
    """

    def __init__(self, collection: Path, state: Path) -> None:
        self.store = JobStore(state / "jobs.sqlite")
        self._collection = collection
        self._lock_path = state / "jobs.lock"
        self._is_stopping = threading.Event()
        self._is_asked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="diptych-jobs", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._lock_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._thread.start()

    def look(self) -> None:
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
            try:
                with write_lock(self._lock_path):
                    self.store.interrupt_running()
                    self._work()
            except CollectionError:
                # Another process runs the jobs of this collection.
                self._is_stopping.wait(_RETRY_SECONDS)
            except (sqlite3.Error, OSError):
                # A full disk, or someone who keeps the file of the jobs locked: neither is for ever.
                _log.exception("jobs cannot be run now; trying again in %g s", _RETRY_SECONDS)
                self._is_stopping.wait(_RETRY_SECONDS)

    def _work(self) -> None:
        while not self._is_stopping.is_set():
            self._is_asked.clear()
            job = self.store.claim()
            if job is None:
                self._is_asked.wait(_POLL_SECONDS)
            else:
                self._do(job)

    def _do(self, job: Job) -> None:
        process = JobProcess(self._collection, job)
        try:
            self._follow(process, job)
        finally:
            # One that can no longer be followed must not go on beside the next.
            process.stop()
            while not process.wait(_POLL_SECONDS):
                pass

    def _follow(self, process: JobProcess, job: Job) -> None:
        last = None
        while not process.wait(_POLL_SECONDS / 2):
            if process.progress != last:
                last = process.progress
                self.store.progress(job.id, *last)
            if self._is_stopping.is_set() or self.store.is_to_cancel(job.id):
                process.stop()
        self.store.progress(job.id, *process.progress)
        if process.result is not None:
            # Whoever wanted to stop it came too late.
            self.store.finish(job.id, "done", result=process.result)
        elif process.was_stopped:
            is_wanted = self.store.is_to_cancel(job.id)
            self.store.finish(job.id, "cancelled" if is_wanted else "interrupted")
        else:
            self.store.finish(job.id, "failed", error=process.error)
