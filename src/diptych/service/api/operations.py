"""``/health``, ``/ready`` and ``/metrics``: whether the service lives, can answer, and how it does."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from diptych.service.context import Context
from diptych.service.openapi import api_document
from diptych.service.operations.collection_numbers import CollectionNumbers
from diptych.service.schemas.health_document import HealthDocument
from diptych.service.schemas.readiness_document import ReadinessDocument
from diptych.service.security.guards import Reading

router = APIRouter(tags=["operations"])


@router.get("/health", summary="Whether the process lives", operation_id="health")
async def health() -> HealthDocument:
    """Answer as long as the process does."""
    return HealthDocument(status="ok")


@router.get(
    "/ready",
    summary="Whether searches can be answered",
    operation_id="ready",
    responses={503: {"model": ReadinessDocument, "description": "Not every collection can be searched yet."}},
)
async def ready(context: Context, response: Response) -> ReadinessDocument:
    """Say of each collection whether it can be searched; 503 until all can."""
    states = context.readiness.states()
    is_ready = all(state == "ready" for state in states.values())
    response.status_code = 200 if is_ready else 503
    return ReadinessDocument(ready=is_ready, collections=states)


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    operation_id="metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    dependencies=[Reading],
)
def metrics(context: Context) -> Response:
    """Return counts, latencies and sizes in the text format of Prometheus."""
    numbers = CollectionNumbers(context.hosted.values(), context.running_jobs())
    return Response(context.metrics.text((numbers,)), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get("/v1/openapi.json", include_in_schema=False, dependencies=[Reading])
async def description(request: Request) -> JSONResponse:
    """Return the OpenAPI document."""
    return JSONResponse(api_document(request.app))
