"""What request handlers share: the parts of the running service, and the guards that routes stand behind.

``Reading`` guards every route under ``/v1``, ``Writing`` besides those that change the collection, and ``Clicking``
those that only add to what the service remembers, which a read-only service does as well. ``Searching`` stands before
those that compute, so that only as many do at once as there are cores.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Path, Request

from diptych.service.clicks import ClickLog
from diptych.service.hosting import HostedCollection, Readiness
from diptych.service.jobs import JobRunner
from diptych.service.operations.metrics import Metrics
from diptych.service.problems import Problem
from diptych.service.security.auth import Credentials
from diptych.service.security.limits import SearchConcurrencyLimit, usable_cores
from diptych.service.settings import Settings
from diptych.service.uploads import UploadStore


@dataclass
class ServiceContext:
    """The settings and the parts of a running service."""

    settings: Settings
    hosted: dict[str, HostedCollection] = field(default_factory=dict)
    readiness: Readiness = field(default_factory=lambda: Readiness(()))
    click_logs: dict[str, ClickLog] = field(default_factory=dict)
    uploads: UploadStore = field(init=False)
    jobs: dict[str, JobRunner] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.credentials = Credentials(self.settings)
        self.metrics = Metrics()
        self.search_limit = SearchConcurrencyLimit(max(1, usable_cores() // self.settings.workers))

    def running_jobs(self) -> dict[str, int]:
        """Return how many jobs work on each collection."""
        return {name: runner.store.count("running") for name, runner in self.jobs.items()}


# Coroutines, because FastAPI would spend a thread on each plain function.
async def request_context(request: Request) -> ServiceContext:
    """Return the context of the application that a request came to."""
    return cast(ServiceContext, request.app.state.context)


Context = Annotated[ServiceContext, Depends(request_context)]


async def request_collection(
    context: Context, collection: Annotated[str, Path(description="Name of the collection.")]
) -> HostedCollection:
    """Return the collection that an address names."""
    hosted = context.hosted.get(collection)
    if hosted is None:
        raise Problem(404, "no-such-collection", f"There is no collection {collection!r}; see /v1/collections.")
    return hosted


Hosted = Annotated[HostedCollection, Depends(request_collection)]


async def may_read(request: Request, context: Context) -> None:
    """Let those read who may reach the service: everyone on this machine; beyond it, those with token or session."""
    context.credentials.check_reading(request, is_public=context.settings.public)


async def may_click(request: Request, context: Context) -> None:
    """Let programs with the token and the page itself through."""
    context.credentials.check_changing(request)


async def may_write(request: Request, context: Context) -> None:
    """Let programs with the token and the page itself write, unless nothing may be written."""
    context.credentials.check_changing(request)
    if context.settings.read_only:
        raise Problem(403, "read-only", "This service only reads; start it without --read-only to write.")


async def search_slot(context: Context) -> AsyncIterator[None]:
    """Hold one of the few places in which searches compute."""
    async with context.search_limit.slot():
        yield


Reading = Depends(may_read)
Clicking = Depends(may_click)
Writing = Depends(may_write)
# Given back as soon as the handler has computed its answer, not when a slow client has taken it.
Searching = Depends(search_slot, scope="function")
