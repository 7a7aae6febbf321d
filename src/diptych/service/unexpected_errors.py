"""Errors that nobody foresaw."""

from __future__ import annotations

import logging

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diptych.service.problem_answers import ProblemResponse, problem_of

_log = logging.getLogger("diptych.service")


class UnexpectedErrors:
    """Logs what nobody foresaw, answers with a problem document that tells nothing of the inside, and goes on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever happens."""
        is_begun = False

        async def watched_send(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except ClientDisconnect:
            raise
        except Exception as error:
            _log.exception("%s %r failed", scope.get("method"), scope.get("path"))
            if is_begun:
                # Half an answer was sent; only a broken connection tells the client that the rest is missing.
                raise
            await ProblemResponse(problem_of(error))(scope, receive, send)
