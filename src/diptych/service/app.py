"""The application: every route, behind every guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

from diptych._version import __version__
from diptych.collection import Collection
from diptych.service import page
from diptych.service.api import ROUTERS
from diptych.service.clicks import ClickLog
from diptych.service.context import ServiceContext
from diptych.service.hosting import CollectionWatch, HostedCollection, Readiness
from diptych.service.jobs import JobRunner
from diptych.service.operations.logging import RequestLogMiddleware
from diptych.service.problems import UnexpectedErrorMiddleware, add_problem_handlers
from diptych.service.security.guards import AuthMiddleware, HostCheckMiddleware, SecurityHeadersMiddleware
from diptych.service.security.limits import BodyLimitMiddleware, RateLimitMiddleware
from diptych.service.settings import Settings
from diptych.service.uploads import UploadStore


def create_app(settings: Settings) -> FastAPI:
    """Return the application that serves the collections of ``settings``."""
    app = FastAPI(
        title="Diptych",
        version=__version__,
        summary="Search pictures with words and words with pictures.",
        # The document is behind the guard of reading, as a route of its own.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.context = ServiceContext(settings)
    add_problem_handlers(app)
    # A router that is included has each of its routes made again, for a tenth of a second of the first request.
    app.router.routes.extend(route for router in (*ROUTERS, page.router) for route in router.routes)
    _add_middleware(app, app.state.context)
    return app


def _add_middleware(app: FastAPI, context: ServiceContext) -> None:
    """Put the layers around the routes, from the inside out."""
    settings = context.settings
    app.add_middleware(UnexpectedErrorMiddleware)
    app.add_middleware(BodyLimitMiddleware, limits=settings.limits)
    if settings.public:
        app.add_middleware(AuthMiddleware, credentials=context.credentials)
    if settings.limits.requests_per_second:
        share = settings.limits.requests_per_second / settings.workers
        app.add_middleware(RateLimitMiddleware, rate=share, burst=settings.limits.burst)
    app.add_middleware(HostCheckMiddleware, allowed=settings.allowed_hosts, is_public=settings.public)
    app.add_middleware(SecurityHeadersMiddleware)
    app.add_middleware(RequestLogMiddleware, metrics=context.metrics)


_PATIENCE_SECONDS = 3.0


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    context: ServiceContext = app.state.context
    settings = context.settings
    for name, folder in settings.collections.items():
        wait, root = settings.limits.write_wait_seconds, settings.roots.get(name)
        hosted = HostedCollection(
            name, Collection.open(folder, write_wait=wait, root=root, replica=settings.replicas.get(name))
        )
        context.hosted[name] = hosted
        context.jobs[name] = JobRunner(str(folder), hosted.collection.store, root)
    context.uploads = UploadStore.shared_by(settings.collections.values(), settings.limits)
    watches: list[CollectionWatch] = []
    if not settings.read_only:
        for runner in context.jobs.values():
            runner.start()
        if settings.watch:
            watches = [CollectionWatch(hosted, context.metrics) for hosted in context.hosted.values()]
            for watch in watches:
                watch.start()
    if settings.log_clicks:
        context.click_logs = {name: ClickLog(hosted.collection.store) for name, hosted in context.hosted.items()}
    context.readiness = Readiness(list(context.hosted.values()))
    context.readiness.start()
    yield
    await asyncio.gather(
        *(run_in_threadpool(watch.stop, _PATIENCE_SECONDS) for watch in watches),
        *(run_in_threadpool(runner.stop) for runner in context.jobs.values()),
        run_in_threadpool(context.readiness.stop, _PATIENCE_SECONDS),
    )
    for click_log in context.click_logs.values():
        click_log.close()
    for hosted in context.hosted.values():
        hosted.collection.close()
