"""``/health``, ``/ready``, ``/metrics``, the session of the page, the document of the API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.routing import APIRoute
from markupsafe import Markup, escape
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from diptych._version import __version__
from diptych.service.context import Context, Reading, ServiceContext, may_click, may_read, may_write
from diptych.service.hosting import CollectionMetrics
from diptych.service.problems import problem_response, problem_schema
from diptych.service.schemas.collections import NewItem
from diptych.service.schemas.jobs import HealthDocument, ReadinessDocument, SessionDocument, SignIn
from diptych.service.security.guards import CSRF_HEADER, refuse_other_sites, unauthorised
from diptych.service.security.tokens import SESSION_SECONDS

_DESCRIPTION = """Search pictures with words and words with pictures.

On the machine itself everyone may read. Writing needs the token of the service as bearer token, or the session of the
page with the CSRF header. Beyond the machine, reading needs one of them as well. Every error is a problem document as
in RFC 9457, whose type stays the same between versions and whose detail says what to do.
"""

_TAGS = {
    "search": "Find pictures and texts, and ways to ask.",
    "items": "What is in a collection.",
    "albums": "What people keep: items under titles, and searches under names.",
    "exports": "Answers as a zip file, plain or as a gallery for a browser.",
    "uploads": "Pictures to search with.",
    "collections": "What can be searched.",
    "retrievers": "Search models of a collection.",
    "rehearsals": "Another search model on the collection's own questions, before anything is changed.",
    "jobs": "Long work: indexing, training, drawing maps.",
    "explanations": "Why an answer is there.",
    "maps": "A collection in the plane.",
    "clicks": "What people used, kept on this machine.",
    "query log": "What was asked, how often, and what found nothing.",
    "interleaving": "Two search models that answer together, and whose answers are clicked.",
    "learning": "What was learned from clicks, and the way back.",
    "session": "Signing in to the page.",
    "operations": "Whether the service lives and how it does.",
}

_EVERYWHERE = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "This may not be done here.",
    421: "The service is not addressed by a name of its own.",
    429: "Too much at once; the header Retry-After says when to try again.",
    503: "The collection is being written, or the service is starting; try again.",
}
_WITH_BODY = {
    408: "The body did not arrive in time.",
    413: "The body or the picture in it is too large.",
    415: "This kind of content is not understood here.",
}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of an application, complete with errors, security and summaries."""
    if app.openapi_schema is None:
        app.openapi_schema = _document(app)
    return app.openapi_schema


def openapi_page(app: FastAPI) -> str:
    """Return the document as a page to read, which needs nothing from elsewhere and no script."""
    if getattr(app.state, "openapi_page", None) is None:
        from jinja2 import Environment, PackageLoader

        pages = Environment(
            loader=PackageLoader("diptych.service.page", ""), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        document = openapi_document(app)
        groups = [
            {**tag, "anchor": tag["name"].replace(" ", "-"), "calls": list(_calls(document, tag["name"]))}
            for tag in document["tags"]
        ]
        page = pages.get_template("api.html.j2")
        app.state.openapi_page = page.render(document=document, groups=groups, kind=_kind)
    return str(app.state.openapi_page)


def _calls(document: dict[str, Any], tag: str) -> Iterator[dict[str, Any]]:
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            if tag in operation["tags"]:
                yield {"verb": verb.upper(), "path": path, "operation": operation}


def _kind(schema: Mapping[str, Any]) -> Markup:
    """Return in words what a schema asks for, with a link to what has a name.

    >>> from diptych.service.api.operations import _kind
    >>> print(_kind({"type": "array", "items": {"type": "integer"}}), _kind({"enum": [1, 2]}))
    list of integer 1 or 2
    """
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return Markup(" or ").join(_kind(part) for part in schema[word])
    if "enum" in schema or "const" in schema:
        return Markup(" or ").join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return Markup("list of {}").format(_kind(schema.get("items", {})))
    kind = schema.get("type", "anything")
    return escape(" or ".join(kind) if isinstance(kind, list) else kind)


def _document(app: FastAPI) -> dict[str, Any]:
    routes = [route for route in app.routes if isinstance(route, APIRoute) and route.include_in_schema]
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=_DESCRIPTION,
        routes=app.routes,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    used = {tag for route in routes for tag in route.tags}
    document["tags"] = [{"name": name, "description": text} for name, text in _TAGS.items() if name in used]
    for route in routes:
        for method in route.methods or ():
            _complete(document["paths"][route.path_format][method.lower()], route)
    components = document["components"]
    schemas = components["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = problem_schema()
    # The framework does not see it, because it comes in two kinds of content.
    schemas["NewItem"] = NewItem.model_json_schema()
    cookie = app.state.context.credentials.sessions.cookie_name
    csrf = "What GET /v1/session gives to the page, against forged requests."
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "The token of the service."},
        "page": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "The session of the page."},
        "csrf": {"type": "apiKey", "in": "header", "name": CSRF_HEADER, "description": csrf},
    }
    return document


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    described = operation.get("description", "").strip()
    if route.summary is None and described:
        operation["summary"] = described.partition(";")[0].partition(". ")[0].removesuffix(".")
    responses = operation["responses"]
    if "HTTPValidationError" in str(responses.get("422")):
        del responses["422"]
    for status, text in _problems(operation).items():
        responses.setdefault(str(status), problem_response(text))
    guards = {guard.dependency for guard in route.dependencies}
    if guards & {may_write, may_click}:
        operation["security"] = [{"token": []}, {"page": [], "csrf": []}]
    elif may_read in guards:
        operation["security"] = [{}, {"token": []}, {"page": []}]


def _problems(operation: dict[str, Any]) -> dict[int, str]:
    parameters = operation.get("parameters", [])
    found = dict(_EVERYWHERE)
    if any(parameter["in"] == "path" for parameter in parameters):
        found[404] = "There is no such thing."
    if parameters or "requestBody" in operation:
        found[422] = "The request does not make sense; the detail says why."
    # Any request may come with a body that is too large, wanted or not.
    return found | _WITH_BODY


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
