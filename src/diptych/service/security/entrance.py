"""Who may come in at all, where others than this machine can reach the service."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from diptych.service.problem import Problem
from diptych.service.problem_answers import ProblemResponse
from diptych.service.security.credentials import Credentials

_SIGN_IN = "/v1/session"


class Entrance:
    """Asks for token or session before anything of the request is read, at every address but that for signing in.

    The guards of the routes ask again; this is the one place that no route can forget.
    """

    def __init__(self, app: ASGIApp, credentials: Credentials) -> None:
        self._app = app
        self._credentials = credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of someone who may come in."""
        if scope["type"] == "http" and _is_private(scope["path"]):
            try:
                self._credentials.check_reading(HTTPConnection(scope), is_public=True)
            except Problem as problem:
                await ProblemResponse(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_private(path: str) -> bool:
    return path == "/metrics" or (path.startswith("/v1") and path != _SIGN_IN)
