"""One piece of long work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

JobKind = Literal["index", "train", "learn", "reencode", "map", "retriever"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled", "interrupted"]
JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)


@dataclass(frozen=True)
class Job:
    """A piece of long work on a collection, and how far it has come.

    ``done`` of ``total`` counts whatever the work is made of, and ``message`` says what is being done. A job ends as
    ``done`` with a ``result``, ``failed`` with an ``error``, ``cancelled``, or ``interrupted`` when the service ended
    before it. Times are ISO 8601 in UTC.
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
