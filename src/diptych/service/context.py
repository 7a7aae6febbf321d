"""What request handlers share: the parts of the running service, and the guards that routes stand behind.

``Reading`` guards every route under ``/v1``, ``Writing`` besides those that change the collection, and ``Clicking``
those that only add to what the service remembers, which a read-only service does as well. ``Searching`` stands before
those that compute, so that only as many do at once as there are cores, ``Decoding`` before those that decode a picture,
which leave a core to the others, and ``InTurn`` before those that make a small change, one after the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Literal, cast

from fastapi import Depends, Header, Path, Request

from diptych.cluster import available_processors
from diptych.service.clicks import ClickLog
from diptych.service.hosting import HostedCollection, Readiness
from diptych.service.jobs import JobRunner
from diptych.service.operations.logging import Metrics
from diptych.service.problems import Problem
from diptych.service.security.guards import Credentials
from diptych.service.security.limits import ConcurrencyLimit, TokenBuckets, client_network
from diptych.service.settings import Settings
from diptych.service.uploads import UploadStore

_MOST_PICTURES_WAITING = 64


@dataclass
class ServiceContext:
    """The settings and the parts of a running service."""

    settings: Settings
    hosted: dict[str, HostedCollection] = field(default_factory=dict)
    readiness: Readiness = field(default_factory=lambda: Readiness(()))
    click_logs: dict[str, ClickLog] = field(default_factory=dict)
    uploads: UploadStore = field(init=False)
    jobs: dict[str, JobRunner] = field(default_factory=dict)
    job_streams: int = 0

    def __post_init__(self) -> None:
        self.credentials = Credentials(self.settings)
        self.metrics = Metrics()
        cores, workers = available_processors(), self.settings.workers
        self.search_limit = ConcurrencyLimit(max(1, cores // workers))
        # Bodies of those that wait take disk and memory; and who waits that long has given up.
        self.decoding_limit = ConcurrencyLimit(max(1, (cores - 1) // workers), max_waiting=_MOST_PICTURES_WAITING)
        per_minute = max(1, self.settings.limits.logged_per_minute)
        self._logged = TokenBuckets(per_minute / 60, per_minute)

    def log_wait(self, visitor: str | None, what: Literal["search", "click"]) -> float:
        """Return 0 where one more of a visitor is to be logged, or the seconds until it is; others are not known."""
        return 0.0 if visitor is None else self._logged.take(f"{what} {visitor}")

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
    """Raise unless the request has the token, or comes from a page that is signed in."""
    context.credentials.check_changing(request)


async def may_write(request: Request, context: Context) -> None:
    """Raise unless the request has the token or comes from a signed-in page, and the service may be written to."""
    context.credentials.check_changing(request)
    if context.settings.read_only:
        raise Problem(403, "read-only", "This service only reads; start it without --read-only to write.")


async def request_visitor(
    request: Request,
    context: Context,
    named: Annotated[
        str | None,
        Header(
            alias="X-Diptych-Visitor",
            min_length=1,
            max_length=400,
            description="Tells the visitors of a program apart that searches for many; any words, of which the click "
            "log keeps a number that means nothing after thirty days. Heeded only with the token.",
        ),
    ] = None,
) -> str | None:
    """Return whose request it is, for the click log: the session of the page, or whom a program names."""
    if not context.settings.log_visitors:
        return None
    if named is not None and context.credentials.has_token(request):
        return f"named {named}"
    session = context.credentials.session(request)
    return None if session is None else f"session {session}"


Visitor = Annotated[str | None, Depends(request_visitor)]


async def search_slot(request: Request, context: Context) -> AsyncIterator[None]:
    """Hold one of the few places in which searches compute."""
    async with context.search_limit.slot(client_network(request.scope), request.receive):
        yield


async def decoding_slot(request: Request, context: Context) -> AsyncIterator[None]:
    """Hold one of the few places in which pictures are decoded; searches do not wait behind them."""
    async with context.decoding_limit.slot(client_network(request.scope), request.receive):
        yield


async def write_slot(request: Request, hosted: Hosted) -> AsyncIterator[None]:
    """Hold the place in which a small change of a collection is made."""
    async with hosted.writes.slot(client_network(request.scope), request.receive):
        yield


Reading = Depends(may_read)
Clicking = Depends(may_click)
Writing = Depends(may_write)
# Given back as soon as the handler has computed its answer, not when a slow client has taken it.
Searching = Depends(search_slot, scope="function")
Decoding = Depends(decoding_slot, scope="function")
InTurn = Depends(write_slot, scope="function")
