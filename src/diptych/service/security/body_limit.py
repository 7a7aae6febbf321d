"""Bodies that are too large or too slow."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from diptych.service.limits import Limits
from diptych.service.problem_answers import ProblemResponse
from diptych.service.security.bounded_body import BoundedBody, drain, too_large

# Boundaries and the fields beside the file.
_MULTIPART_EXTRA = 64 * 1024


class BodyLimit:
    """Counts and times a body while it arrives, whatever its headers say, and answers 413 or 408.

    A multipart body may be as long as an upload may be, any other as long as a document.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body is within bounds."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        most = self._most_bytes(headers.get(b"content-type", b""))
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > most:
            if b"expect" not in headers:
                await drain(receive)
            await ProblemResponse(too_large(most))(scope, receive, send)
            return
        await BoundedBody(self._app, most, self._limits.body_seconds).run(scope, receive, send)

    def _most_bytes(self, content_type: bytes) -> int:
        is_multipart = content_type.strip().lower().startswith(b"multipart/")
        return self._limits.upload_bytes + _MULTIPART_EXTRA if is_multipart else self._limits.body_bytes
