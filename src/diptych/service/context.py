"""What the handlers of requests share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Path, Request

from diptych.service.clicks import ClickLog
from diptych.service.hosted_collection import HostedCollection
from diptych.service.jobs import JobRunner
from diptych.service.operations.metrics import Metrics
from diptych.service.operations.readiness import Readiness
from diptych.service.operations.turns import Turns, usable_cores
from diptych.service.problem import Problem
from diptych.service.security.credentials import Credentials
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
        self.search_turns = Turns(max(1, usable_cores() // self.settings.workers))

    def running_jobs(self) -> dict[str, int]:
        """Return how many jobs work on each collection."""
        return {name: runner.store.count("running") for name, runner in self.jobs.items()}


# Coroutines, because FastAPI would spend a thread on each plain function.
async def current_context(request: Request) -> ServiceContext:
    """Return the context of the application that a request came to."""
    return cast(ServiceContext, request.app.state.context)


Context = Annotated[ServiceContext, Depends(current_context)]


async def hosted_collection(
    context: Context, collection: Annotated[str, Path(description="Name of the collection.")]
) -> HostedCollection:
    """Return the collection that an address names."""
    hosted = context.hosted.get(collection)
    if hosted is None:
        raise Problem(404, "no-such-collection", f"There is no collection {collection!r}; see /v1/collections.")
    return hosted


Hosted = Annotated[HostedCollection, Depends(hosted_collection)]
