"""The jobs of a collection, in a table that all services of it share."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store

JobKind = Literal["index", "train", "learn", "reencode", "map", "retriever", "rehearse", "read_text", "regions"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled", "interrupted"]
JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)
# Retrievers that need no training and are added by name.
ReadyMadeRetriever = Literal["default", "strong"]
READY_MADE: tuple[ReadyMadeRetriever, ...] = get_args(ReadyMadeRetriever)

LOST_AFTER_S = 60.0
"""A job whose runner has not been heard of for so long waits again."""

MAX_FINISHED = 1000
MAX_MESSAGE = 500
# In the order of the members of ``Job``.
_COLUMNS = "name, kind, parameters, state, created, done, total, message, error, result, started, finished"
_IS_OWN = "name = ? AND started = ? AND state = 'running'"


@dataclass(frozen=True)
class Job:
    """A piece of long work, and how far it has come."""

    id: str
    """Its name in addresses."""
    kind: JobKind
    """What it does."""
    parameters: Mapping[str, Any]
    """What it was asked with."""
    state: JobState
    """Where it stands; interrupted means that the service ended before it did."""
    created: str
    """When it was asked for, ISO 8601."""
    done: int = 0
    """How much is done, of `total`."""
    total: int = 0
    """How much there is to do; 0 when that cannot be said."""
    message: str = ""
    """What it does, or did last, in words; empty before it begins."""
    error: str | None = None
    """Why it failed, in one sentence; null unless it did."""
    result: Mapping[str, Any] | None = None
    """What came out, by its kind; null until it has succeeded."""
    started: str | None = None
    """When it began, ISO 8601; null while it waits."""
    finished: str | None = None
    """When it ended, in whichever way; null until then."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state not in ("waiting", "running")


class JobStore:
    """Remembers jobs; one of them runs at a time, whichever service runs it.

    A claimed job belongs to its runner as long as that calls :meth:`beat` within :data:`LOST_AFTER_S`. The time of its
    start tells the runner that has it from one that lost it.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.collection.store.sqlite import SqliteStore
    >>> from diptych.service.jobs import JobStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SqliteStore.create(Path(folder))
    ...     jobs = JobStore(store)
    ...     job = jobs.add("index", {"remove_missing": True})
    ...     jobs.claim().id == job.id, jobs.find(job.id).state
    ...     store.close()
    (True, 'running')
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, kind: JobKind, parameters: Mapping[str, Any]) -> Job:
        """Remember a job that waits for its turn."""
        job = Job(secrets.token_hex(8), kind, dict(parameters), "waiting", _now())

        def insert(db: Connection) -> None:
            db.run(
                "INSERT INTO job (name, kind, parameters, state, created) VALUES (?, ?, ?, ?, ?)",
                (job.id, job.kind, json.dumps(job.parameters), job.state, job.created),
            )
            db.run(
                "DELETE FROM job WHERE finished IS NOT NULL AND id <= (SELECT max(id) FROM job) - ?", (MAX_FINISHED,)
            )

        self._store.write(insert)
        return job

    def find(self, job_id: str) -> Job | None:
        """Return a job, or None."""
        found = self._select("WHERE name = ?", job_id)
        return found[0] if found else None

    def newest(self, limit: int) -> list[Job]:
        """Return jobs, the newest first."""
        return self._select("ORDER BY id DESC LIMIT ?", limit)

    def count(self, state: JobState) -> int:
        """Return how many jobs are in a state."""
        with self._store.reading() as db:
            return int(db.value("SELECT count(*) FROM job WHERE state = ?", (state,)))

    def claim(self) -> Job | None:
        """Take the job that has waited longest; None where none waits, or another one runs."""
        lost = time.time_ns() - int(LOST_AFTER_S * 1e9)
        # Runners look often, so they look without the lock of those who write.
        with self._store.reading() as db:
            sql = "SELECT 1 FROM job WHERE state = 'waiting' OR (state = 'running' AND beat_ns < ?)"
            if db.value(sql, (lost,)) is None:
                return None

        def take(db: Connection) -> Job | None:
            db.run(
                "UPDATE job SET state = 'cancelled', finished = ?"
                " WHERE state = 'running' AND beat_ns < ? AND to_cancel = 1",
                (_now(), lost),
            )
            db.run(
                "UPDATE job SET state = 'waiting', started = NULL, done = 0, total = 0, message = ''"
                " WHERE state = 'running' AND beat_ns < ?",
                (lost,),
            )
            rows = db.rows(
                "UPDATE job SET state = 'running', started = ?, beat_ns = ?"
                " WHERE id = (SELECT min(id) FROM job WHERE state = 'waiting')"
                f" AND NOT EXISTS (SELECT 1 FROM job WHERE state = 'running') RETURNING {_COLUMNS}",
                (_now(), time.time_ns()),
            )
            return _job(rows[0]) if rows else None

        return self._store.write(take)

    def beat(self, job: Job) -> None:
        """Note that the runner of a claimed job is there."""
        sql = f"UPDATE job SET beat_ns = ? WHERE {_IS_OWN}"
        self._store.write(lambda db: db.run(sql, (time.time_ns(), job.id, job.started)))

    def advance(self, job: Job, done: int, total: int, message: str) -> None:
        """Note how far a claimed job has come."""
        sql = f"UPDATE job SET done = ?, total = ?, message = ?, beat_ns = ? WHERE {_IS_OWN}"
        values = (done, total, message[:MAX_MESSAGE], time.time_ns(), job.id, job.started)
        self._store.write(lambda db: db.run(sql, values))

    def finish(
        self, job: Job, state: JobState, *, error: str | None = None, result: Mapping[str, Any] | None = None
    ) -> None:
        """Note how a claimed job ended."""
        sql = (
            "UPDATE job SET state = ?, error = ?, result = ?, finished = ?,"
            f" done = CASE WHEN ? = 1 THEN total ELSE done END WHERE {_IS_OWN}"
        )
        told = None if result is None else json.dumps(result)
        values = (
            state,
            None if error is None else error[:MAX_MESSAGE],
            told,
            _now(),
            int(state == "done"),
            job.id,
            job.started,
        )
        self._store.write(lambda db: db.run(sql, values))

    def ask_to_cancel(self, job_id: str) -> None:
        """Cancel a job that waits, and ask the runner of one that runs to stop it."""

        def cancel(db: Connection) -> None:
            db.run("UPDATE job SET to_cancel = 1 WHERE name = ?", (job_id,))
            sql = "UPDATE job SET state = 'cancelled', finished = ? WHERE name = ? AND state = 'waiting'"
            db.run(sql, (_now(), job_id))

        self._store.write(cancel)

    def is_to_cancel(self, job: Job) -> bool:
        """Return True if a claimed job is to stop, or if another runner has it."""
        with self._store.reading() as db:
            return db.value(f"SELECT 1 FROM job WHERE {_IS_OWN} AND to_cancel = 0", (job.id, job.started)) is None

    def _select(self, condition: str, value: str | int) -> list[Job]:
        with self._store.reading() as db:
            return [_job(row) for row in db.rows(f"SELECT {_COLUMNS} FROM job {condition}", (value,))]


def _job(row: tuple[Any, ...]) -> Job:
    job = Job(*row)
    result = None if job.result is None else json.loads(str(job.result))
    return replace(job, parameters=json.loads(str(job.parameters)), result=result)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
