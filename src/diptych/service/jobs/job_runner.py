"""Running the jobs of a collection one after the other."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path

from diptych.collection.store.store import Store
from diptych.errors import CollectionBusyError, CollectionError, without_folders
from diptych.service.jobs.job_store import JobStore
from diptych.service.jobs.runner import JobProcess
from diptych.service.jobs.store import Job

POLL_SECONDS = 0.5
PROGRESS_SECONDS = 1.0
BEAT_SECONDS = 15.0
RETRY_SECONDS = 5.0
_log = logging.getLogger("diptych.service")


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
            _log.error("job %s (%s) of %s failed: %s", job.id, job.kind, self._collection, process.error)
            folder = Path(self._collection)
            self.store.finish(job, "failed", error=without_folders(process.error, folder, folder.parent))
