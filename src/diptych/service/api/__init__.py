"""The REST API: a module for each resource, with its documents and its routes."""

from fastapi import APIRouter

from diptych.service.api import (
    albums,
    clicks,
    collections,
    explanations,
    items,
    jobs,
    operations,
    rehearsals,
    retrievers,
    search,
)

ROUTERS: tuple[APIRouter, ...] = (
    operations.router,
    operations.session_router,
    collections.router,
    search.router,
    items.router,
    albums.router,
    albums.exports_router,
    search.uploads_router,
    retrievers.router,
    rehearsals.router,
    jobs.router,
    clicks.router,
    clicks.interleaving_router,
    retrievers.learning_router,
    explanations.router,
    collections.maps_router,
    clicks.query_log_router,
)
