"""The application: every route, behind every guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI

from diptych import __version__
from diptych.collection import Collection
from diptych.service.api import collections, items, operations, search, uploads
from diptych.service.clicks.opening import open_click_logs
from diptych.service.context import ServiceContext
from diptych.service.hosted_collection import HostedCollection
from diptych.service.operations.readiness import Readiness
from diptych.service.problem_answers import add_problem_answers
from diptych.service.settings import Settings
from diptych.service.uploads import UploadStore

# Each router is one resource; its module says what it does.
ROUTERS: tuple[APIRouter, ...] = (
    operations.router,
    collections.router,
    search.router,
    items.router,
    uploads.router,
)


def create_app(settings: Settings) -> FastAPI:
    """Return the application that serves the collections of ``settings``."""
    app = FastAPI(
        title="Diptych",
        version=__version__,
        summary="Search pictures with words and words with pictures.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.context = ServiceContext(settings)
    add_problem_answers(app)
    for router in ROUTERS:
        app.include_router(router)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    context: ServiceContext = app.state.context
    for name, folder in context.settings.collections.items():
        context.hosted[name] = HostedCollection(name, Collection.open(folder))
    context.uploads = UploadStore.shared_by(context.settings.collections.values(), context.settings.limits)
    if context.settings.log_clicks:
        context.click_logs = open_click_logs(context.hosted.values())
    context.readiness = Readiness(list(context.hosted.values()))
    context.readiness.start()
    yield
    context.readiness.wait()
    for click_log in context.click_logs.values():
        click_log.close()
    for hosted in context.hosted.values():
        hosted.collection.close()
