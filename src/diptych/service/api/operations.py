"""``/health``, ``/ready``, ``/metrics``, the session of the page, the document of the API."""

from __future__ import annotations

from typing import Literal, Self

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel, ConfigDict, Field, model_validator

from diptych._version import __version__
from diptych.service.api.openapi import openapi_document, openapi_page
from diptych.service.context import Context, Reading, ServiceContext
from diptych.service.hosting import CollectionMetrics
from diptych.service.security.guards import refuse_other_sites, unauthorised
from diptych.service.security.tokens import SESSION_SECONDS


class HealthDocument(BaseModel):
    """That the process lives."""

    status: Literal["ok"] = Field(description="That it does.")


class ReadinessDocument(BaseModel):
    """Whether every collection can be searched."""

    ready: bool = Field(description="Whether all of them can.")
    collections: dict[str, str] = Field(description="By name: ready, or why not; nothing for those who may not read.")


class SessionDocument(BaseModel):
    """Whether a browser may write, and what its requests carry to do so."""

    signed_in: bool = Field(description="Whether the browser has a session, or the request the token.")
    needs_token: bool = Field(description="Whether reading needs the token or a session as well.")
    csrf: str | None = Field(description="For the header X-Diptych-CSRF of every request that changes something.")
    read_only: bool = Field(description="Whether every write is refused.")
    version: str = Field(description="The version of the service.")


class SignIn(BaseModel):
    """The token, or the key of an address that works once: with either a browser begins a session."""

    # Mistakes are told to the client with what was wrong, which must not be the secret.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token: str | None = Field(default=None, min_length=1, max_length=1_000, description="The token of the service.")
    key: str | None = Field(default=None, min_length=1, max_length=1_000, description="The key of a sign-in address.")

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.token is None) == (self.key is None):
            raise ValueError("give the token or a key, one of them")
        return self


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
async def ready(request: Request, context: Context, response: Response) -> ReadinessDocument:
    """Say of each collection whether it can be searched; 503 until all can."""
    states = context.readiness.states
    is_ready = all(state == "ready" for state in states.values())
    response.status_code = 200 if is_ready else 503
    may_read = not context.settings.public or context.credentials.is_known(request)
    return ReadinessDocument(ready=is_ready, collections=states if may_read else {})


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
    numbers = CollectionMetrics(context.hosted.values(), context.running_jobs())
    return Response(context.metrics.text((numbers,)), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get("/v1/openapi.json", include_in_schema=False, dependencies=[Reading])
async def description(request: Request) -> JSONResponse:
    """Return the OpenAPI document."""
    return JSONResponse(openapi_document(request.app))


@router.get("/docs", include_in_schema=False, dependencies=[Reading])
async def description_page(request: Request) -> HTMLResponse:
    """Return the OpenAPI document as a page to read."""
    return HTMLResponse(openapi_page(request.app))


session_router = APIRouter(prefix="/v1", tags=["session"])


@session_router.get("/session", summary="Whether the page may write", operation_id="getSession")
async def get_session(request: Request, response: Response, context: Context) -> SessionDocument:
    """Return what the page needs to know, and let its session last on; POST begins one."""
    refuse_other_sites(request)
    credentials = context.credentials
    has_token = credentials.has_token(request)
    session = credentials.session(request)
    if session is not None:
        _set_session_cookie(session, request, response, context)
    return _session_document(context, session, has_token=has_token)


@session_router.post("/session", summary="Sign in", operation_id="signIn")
async def sign_in(given: SignIn, request: Request, response: Response, context: Context) -> SessionDocument:
    """Begin a session of the page, as a cookie that scripts cannot read, with the token or with a key for one use."""
    refuse_other_sites(request)
    credentials = context.credentials
    if given.key is not None:
        session = credentials.sessions.begin(given.key)
        if session is None:
            raise unauthorised("This address was used before or is too old; sign in with the token.")
    elif credentials.is_token(given.token or ""):
        session = credentials.sessions.new()
    else:
        raise unauthorised("This is not the token of this service.")
    _set_session_cookie(session, request, response, context)
    return _session_document(context, session, has_token=True)


@session_router.delete("/session", summary="Sign out", operation_id="signOut", status_code=204)
async def sign_out(request: Request, response: Response, context: Context) -> None:
    """End the session, for every copy of its cookie, and let the browser forget it."""
    refuse_other_sites(request)
    sessions = context.credentials.sessions
    session = context.credentials.session(request)
    if session is not None:
        sessions.end(session)
    response.delete_cookie(sessions.cookie_name, httponly=True, samesite="strict")


def _set_session_cookie(session: str, request: Request, response: Response, context: ServiceContext) -> None:
    sessions = context.credentials.sessions
    response.set_cookie(
        sessions.cookie_name,
        sessions.cookie(session),
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def _session_document(context: ServiceContext, session: str | None, *, has_token: bool) -> SessionDocument:
    return SessionDocument(
        signed_in=has_token or session is not None,
        needs_token=context.settings.public,
        csrf=None if session is None else context.credentials.sessions.csrf(session),
        read_only=context.settings.read_only,
        version=__version__,
    )
