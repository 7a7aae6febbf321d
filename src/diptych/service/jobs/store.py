"""The jobs of a collection, kept in a SQLite file that several processes share."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from diptych.errors import InvalidInputError
from diptych.service.clicks.database import make_private_file

JobKind = Literal["index", "train", "learn", "reencode", "map", "retriever", "rehearse", "read_text", "regions"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled", "interrupted"]
JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)
# Retrievers that need no training and are added by name.
ReadyMadeRetriever = Literal["light", "default", "strong", "conse"]
READY_MADE: tuple[ReadyMadeRetriever, ...] = get_args(ReadyMadeRetriever)


@dataclass(frozen=True)
class Job:
    """A piece of long work on a collection, and how far it has come; times are ISO 8601 in UTC.

    A job ends as ``done`` with a ``result``, ``failed`` with an ``error``, ``cancelled``, or ``interrupted`` when the
    service ended before it.
    """

    id: str
    kind: JobKind
    parameters: Mapping[str, Any]
    state: JobState
    created: str
    done: int = 0
    total: int = 0
    message: str = ""
    error: str | None = None
    result: Mapping[str, Any] | None = None
    started: str | None = None
    finished: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state not in ("waiting", "running")


_FORMAT_VERSION = 1
_SCHEMA = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, parameters TEXT NOT NULL,
    state TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0,
    message TEXT NOT NULL DEFAULT '', error TEXT, result TEXT, created TEXT NOT NULL, started TEXT, finished TEXT,
    to_cancel INTEGER NOT NULL DEFAULT 0
)
"""

_COLUMNS = ", ".join(column.name for column in fields(Job))
_BUSY_SECONDS = 10.0
_MAX_KEPT = 1000


class JobStore:
    """Remembers jobs in one file, which several processes may read and write.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.service.jobs import JobStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jobs = JobStore(Path(folder) / "jobs.sqlite")
    ...     job = jobs.add("index", {"remove_missing": True})
    ...     jobs.claim().id == job.id, jobs.find(job.id).state
    (True, 'running')
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, kind: JobKind, parameters: Mapping[str, Any]) -> Job:
        """Remember a job that waits for its turn."""
        job = Job(secrets.token_hex(8), kind, dict(parameters), "waiting", _now())
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO jobs (id, kind, parameters, state, created) VALUES (?, ?, ?, ?, ?)",
                (job.id, job.kind, json.dumps(job.parameters), job.state, job.created),
            )
            connection.execute(
                "DELETE FROM jobs WHERE finished IS NOT NULL AND number <= (SELECT MAX(number) FROM jobs) - ?",
                (_MAX_KEPT,),
            )
        return job

    def find(self, job_id: str) -> Job | None:
        """Return a job, or None."""
        found = self._select("WHERE id = ?", (job_id,))
        return found[0] if found else None

    def newest(self, limit: int) -> list[Job]:
        """Return jobs, the newest first."""
        return self._select("ORDER BY number DESC LIMIT ?", (limit,))

    def count(self, state: JobState) -> int:
        """Return how many jobs are in a state."""
        return len(self._select("WHERE state = ?", (state,)))

    def claim(self) -> Job | None:
        """Take the job that has waited longest, or None; nobody else can take it then."""
        if not self._path.exists():
            return None
        with self._writing() as connection:
            row = connection.execute(
                "UPDATE jobs SET state = 'running', started = ? WHERE number = "
                f"(SELECT MIN(number) FROM jobs WHERE state = 'waiting') RETURNING {_COLUMNS}",
                (_now(),),
            ).fetchone()
        return None if row is None else _job(row)

    def progress(self, job_id: str, done: int, total: int, message: str) -> None:
        """Note how far a job has come."""
        statement = "UPDATE jobs SET done = ?, total = ?, message = ? WHERE id = ? AND state = 'running'"
        with self._writing() as connection:
            connection.execute(statement, (done, total, message, job_id))

    def finish(
        self, job_id: str, state: JobState, *, error: str | None = None, result: Mapping[str, Any] | None = None
    ) -> None:
        """Note how a job ended."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, error = ?, result = ?, finished = ?, "
                "done = CASE WHEN ? = 'done' THEN total ELSE done END WHERE id = ?",
                (state, error, None if result is None else json.dumps(result), _now(), state, job_id),
            )

    def ask_to_cancel(self, job_id: str) -> None:
        """Cancel a job that waits, and ask whoever runs it to stop one that runs."""
        cancelled = "UPDATE jobs SET state = 'cancelled', finished = ? WHERE id = ? AND state = 'waiting'"
        with self._writing() as connection:
            connection.execute("UPDATE jobs SET to_cancel = 1 WHERE id = ?", (job_id,))
            connection.execute(cancelled, (_now(), job_id))

    def is_to_cancel(self, job_id: str) -> bool:
        """Return True if someone wants a job to stop."""
        with self._reading() as connection:
            row = connection.execute("SELECT to_cancel FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return row is not None and bool(row[0])

    def interrupt_running(self) -> None:
        """Note that whatever ran has ended with the process that ran it."""
        if self._path.exists():
            interrupted = "UPDATE jobs SET state = 'interrupted', finished = ? WHERE state = 'running'"
            with self._writing() as connection:
                connection.execute(interrupted, (_now(),))

    def _select(self, condition: str, values: tuple[Any, ...]) -> list[Job]:
        if not self._path.exists():
            return []
        with self._reading() as connection:
            return [_job(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM jobs {condition}", values)]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            if (version := _version(connection)) not in (0, _FORMAT_VERSION):
                raise InvalidInputError(
                    f"{self._path.name} has format {version}, and this Diptych uses {_FORMAT_VERSION}; move it away"
                )
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        make_private_file(self._path)
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) == 0:
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {_FORMAT_VERSION}")
            yield connection
            connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _job(row: tuple[Any, ...]) -> Job:
    job = Job(*row)
    result = None if job.result is None else json.loads(str(job.result))
    return replace(job, parameters=json.loads(str(job.parameters)), result=result)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
