"""A job, as clients see it."""

from __future__ import annotations

from typing import Any

from diptych.service.jobs.job import JobKind, JobState
from diptych.service.schemas.document import Document


class JobDocument(Document):
    """A piece of long work, and how far it has come."""

    id: str
    """Its name in addresses."""
    kind: JobKind
    """What is done."""
    parameters: dict[str, Any]
    """What it was told."""
    state: JobState
    """Where it stands; interrupted means that the service ended before it did."""
    done: int
    """How much is done."""
    total: int
    """Of how much; 0 when that cannot be said."""
    message: str
    """What is being done."""
    error: str | None
    """Why it failed."""
    result: dict[str, Any] | None
    """What came out."""
    created: str
    """When it was asked for, ISO 8601."""
    started: str | None
    """When it began."""
    finished: str | None
    """When it ended."""
