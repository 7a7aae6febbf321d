"""``/health`` and ``/ready``: whether the service lives, and whether it can answer."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from diptych.service.context import Context

router = APIRouter(tags=["operations"])


@router.get("/health", summary="Whether the process lives", operation_id="health")
async def health() -> dict[str, str]:
    """Answer as long as the process does."""
    return {"status": "ok"}


@router.get("/ready", summary="Whether searches can be answered", operation_id="ready")
async def ready(context: Context) -> JSONResponse:
    """Say of each collection whether it can be searched; 503 until all can."""
    states = context.readiness.states()
    is_ready = all(state == "ready" for state in states.values())
    return JSONResponse({"ready": is_ready, "collections": states}, 200 if is_ready else 503)
