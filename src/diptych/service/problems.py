"""Every error as a problem document (RFC 9457)."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diptych.errors import (
    ActiveRetrieverError,
    CollectionBusyError,
    CollectionError,
    DiptychError,
    InvalidInputError,
    MissingPackageError,
    NoRoomError,
    UnknownItemError,
    UnknownNameError,
    UnknownRetrieverError,
    UnsearchableItemError,
)


class Problem(Exception):
    """An answer other than success, as a problem document (RFC 9457).

    ``kind`` is the last part of the document's type and stays the same between versions; ``detail`` says what to do.

    >>> from diptych.service.problems import Problem
    >>> Problem(404, "no-such-item", "There is no item x.").document()["status"]
    404
    """

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: dict[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = headers or {}
        self.members = members

    def document(self) -> dict[str, Any]:
        """Return the members of the problem document."""
        return {
            "type": f"/problems/{self.kind}",
            "title": self.kind.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }


MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger("diptych.service")
_MOST_ERRORS = 20
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)

_PLAIN_KINDS = {
    400: ("malformed-request", "The request cannot be read; check its body and its content type."),
    404: ("no-such-address", "There is nothing at this address; /v1/openapi.json lists what there is."),
    405: ("method-not-allowed", "This address does not take that method; the header Allow names those it takes."),
    413: ("too-large", "The request is larger than this service takes."),
    415: ("unsupported-media-type", "This kind of content is not understood here."),
}

_COLLECTION_KINDS: dict[type[CollectionError], tuple[int, str, str]] = {
    UnknownItemError: (404, "no-such-item", "There is no such item in the collection; take the id of an answer."),
    UnknownRetrieverError: (
        404,
        "no-such-retriever",
        "There is no such search model in the collection; its address /retrievers lists those there are.",
    ),
    ActiveRetrieverError: (409, "retriever-active", "This is the search model in use; activate another one first."),
    CollectionBusyError: (503, "busy", "The collection is being written by someone else; try again in a moment."),
    CollectionError: (500, "collection-unusable", "The collection cannot be used; the log of the service says why."),
}


class ProblemResponse(Response):
    """The answer that carries a problem document."""

    media_type = MEDIA_TYPE

    def __init__(self, problem: Problem) -> None:
        content = json.dumps(problem.document(), ensure_ascii=False).encode("utf-8", errors="replace")
        super().__init__(content, problem.status, problem.headers)


def problem_of(error: Exception) -> Problem:
    """Return what a client is told about an error.

    >>> from diptych.errors import InvalidInputError
    >>> from diptych.service.problems import problem_of
    >>> problem_of(InvalidInputError("k must be at least 1")).status
    422
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid_request(error)
    if isinstance(error, HTTPException):
        plain = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-"), str(error.detail)
        kind, detail = _PLAIN_KINDS.get(error.status_code, plain)
        return Problem(error.status_code, kind, detail, headers=dict(error.headers or {}))
    if isinstance(error, CollectionError):
        return _collection_problem(error)
    if isinstance(error, (InvalidInputError, UnknownNameError)):
        return Problem(422, "invalid-input", sentence(error))
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return _no_room(None)
    if isinstance(error, OSError) and error.errno in _NOT_WRITABLE:
        return Problem(403, "not-writable", "The service may not write there; ask its owner to let it.")
    if isinstance(error, MemoryError):
        detail = "There is not enough memory for this now; try again in a moment, or ask for less."
        return Problem(503, "no-memory", detail, headers={"Retry-After": "10"})
    if isinstance(error, MissingPackageError):
        return Problem(501, "missing-package", sentence(error))
    detail = "Internal error; the log of the service says what went wrong."
    return Problem(500, "unexpected-error", detail)


def add_problem_handlers(app: FastAPI) -> None:
    """Let an application answer every foreseen error with a problem document."""
    for kind in (Problem, RequestValidationError, HTTPException, DiptychError):
        app.add_exception_handler(kind, _handle_error)


async def _handle_error(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if problem.status == HTTPStatus.METHOD_NOT_ALLOWED:
        # The methods of all routes of the address, not of the first alone.
        path = request.scope["path"]
        routes = (route for route in request.app.routes if isinstance(route, Route))
        methods = {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
        problem.headers["Allow"] = ", ".join(sorted(methods)) or problem.headers.get("allow", "")
    if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("a request failed", exc_info=error)
    return ProblemResponse(problem)


def _invalid_request(error: RequestValidationError) -> Problem:
    errors = [
        {"at": "/".join(str(part) for part in entry["loc"]), "message": str(entry["msg"])}
        for entry in error.errors()[:_MOST_ERRORS]
    ]
    first = f"{errors[0]['at']}: {errors[0]['message']}" if errors else "it does not follow the schema"
    return Problem(422, "invalid-request", f"The request cannot be used: {first}.", errors=errors)


def _no_room(missing: int | None) -> Problem:
    detail = "There is no room left where the service writes; ask its owner to "
    if missing is None:
        return Problem(507, "no-room", detail + "make some.")
    return Problem(507, "no-room", f"{detail}free {missing:,} bytes.", missing_bytes=missing)


def _collection_problem(error: CollectionError) -> Problem:
    if isinstance(error, NoRoomError):
        return _no_room(error.missing)
    if isinstance(error, UnsearchableItemError):
        return Problem(422, "invalid-input", sentence(error))
    # The message may name folders of this machine, which are none of the client's business.
    status, kind, detail = _COLLECTION_KINDS.get(type(error), _COLLECTION_KINDS[CollectionError])
    return Problem(status, kind, detail, headers={"Retry-After": "2"} if kind == "busy" else None)


def sentence(error: Exception) -> str:
    """Return the message of an error with a capital letter and a full stop."""
    text = " ".join(str(error).split())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def problem_schema() -> dict[str, Any]:
    """Return the JSON schema of a problem document."""
    told = {
        "type": "What went wrong, as an address that stays the same between versions.",
        "title": "The same in words.",
        "detail": "What happened, and what to do.",
    }
    place = {"at": "Where in the request.", "message": "What is wrong there."}
    properties = {name: {"type": "string", "description": text} for name, text in told.items()}
    entry = {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in place.items()},
        "required": list(place),
    }
    return {
        "type": "object",
        "title": "Problem",
        "description": "A problem document as in RFC 9457.",
        "properties": {
            **properties,
            "status": {"type": "integer", "description": "The status of HTTP."},
            "errors": {"type": "array", "items": entry, "description": "Each mistake of a request."},
        },
        "required": ["type", "title", "status", "detail"],
    }


def problem_response(text: str) -> dict[str, Any]:
    """Return the description of an answer that is a problem document."""
    return {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


class HttpMiddleware:
    """A layer around the application; ``_answer`` takes HTTP requests, or raises a problem before it sends anything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is no HTTP request, and answer a request or send the problem that it raises."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._answer(scope, receive, send)
        except Problem as problem:
            await ProblemResponse(problem)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError


class UnexpectedErrorMiddleware(HttpMiddleware):
    """Logs unexpected errors, answers with a problem document without internal details, and goes on."""

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def watched_send(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except ClientDisconnect:
            raise
        except asyncio.CancelledError:
            # The server ends and has lost its patience with this request; it would call that an error of its own.
            if is_begun:
                raise
            detail = "The service ends before this request could; look whether it was done before trying again."
            await ProblemResponse(Problem(503, "busy", detail, headers={"Retry-After": "2"}))(scope, receive, send)
        except Exception as error:
            _log.exception("%s %r failed", scope.get("method"), scope.get("path"))
            if is_begun:
                # Half an answer was sent; only a broken connection tells the client that the rest is missing.
                raise
            await ProblemResponse(problem_of(error))(scope, receive, send)
