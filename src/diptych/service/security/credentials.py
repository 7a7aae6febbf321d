"""What a request brings along to show who sends it."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from diptych.service.problem import Problem
from diptych.service.security.page_sessions import PageSessions
from diptych.service.settings import Settings

CSRF_HEADER = "X-Diptych-CSRF"
_OWN_SITES = ("same-origin", "none")
_TO_WRITE = "To write, or to read the log, send the header 'Authorization: Bearer TOKEN', or use the page."
_WRONG_TOKEN = "This is not the token of this service."


class Credentials:
    """Checks tokens, page sessions, and that a browser's request comes from the page itself."""

    def __init__(self, settings: Settings) -> None:
        self._token_digest = None if settings.token is None else _digest(settings.token)
        self.sessions = PageSessions(settings.session_secret, settings.token)

    def is_token(self, given: str) -> bool:
        """Say whether this is the token, in a time that does not depend on how much of it is right."""
        return self._token_digest is not None and hmac.compare_digest(_digest(given), self._token_digest)

    def has_token(self, request: HTTPConnection) -> bool:
        """Say whether a request brings the token; a wrong one is refused."""
        header = request.headers.get("authorization")
        if header is None:
            return False
        scheme, _, given = header.partition(" ")
        if scheme.lower() != "bearer" or not self.is_token(given.strip()):
            raise unauthorised(_WRONG_TOKEN)
        return True

    def session(self, request: HTTPConnection) -> str | None:
        """Return the page session of a request."""
        return self.sessions.read(request.cookies.get(self.sessions.cookie_name))

    def check_reading(self, request: HTTPConnection, *, is_public: bool) -> None:
        """Raise unless a request may read."""
        refuse_other_sites(request)
        if not self.has_token(request) and is_public and self.session(request) is None:
            raise unauthorised("This service needs its token: sign in on the page, or send it as bearer token.")

    def check_changing(self, request: HTTPConnection) -> None:
        """Raise unless a request may change something: it has the token, or is sent by the page itself."""
        refuse_other_sites(request)
        if self.has_token(request):
            return
        session = self.session(request)
        if session is None:
            raise unauthorised(_TO_WRITE)
        if not self.sessions.is_own(session, request.headers.get(CSRF_HEADER)):
            raise Problem(
                403, "wrong-csrf", f"The header {CSRF_HEADER} is missing or old; take it from GET /v1/session."
            )


def refuse_other_sites(request: HTTPConnection) -> None:
    """Raise where a browser says that another site's page sends the request."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    is_other = site is not None and site.strip().lower() not in _OWN_SITES
    if is_other or (origin is not None and not _is_own_origin(origin, request.headers.get("host", ""))):
        raise Problem(403, "cross-site", "Pages of other sites may not use this service.")


def unauthorised(detail: str) -> Problem:
    """Return the problem that asks for the token."""
    return Problem(401, "token-needed", detail, headers={"WWW-Authenticate": "Bearer"})


def _is_own_origin(origin: str, host: str) -> bool:
    # A proxy may speak HTTPS for us, so the scheme is not compared; what counts is the name and the port.
    try:
        return bool(host) and urlsplit(origin).netloc.lower() == host.strip().lower()
    except ValueError:
        return False


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", errors="replace")).digest()
