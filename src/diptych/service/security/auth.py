"""Who may use the service: the token, the sessions of the page, and the middleware that asks for them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from diptych.service.problems import HttpMiddleware, Problem
from diptych.service.settings import Settings

# How long a session lasts after it was last renewed.
SESSION_SECONDS = 12 * 3600


class PageSessions:
    """Signs cookies that say a browser was let in, and the values that its scripts send back against forged requests.

    A cookie is an identifier and an expiry under an HMAC: sessions cost no memory, every process with the same secret
    accepts them, and changing the token, on which the key depends as well, ends them.

    >>> from diptych.service.security.auth import PageSessions
    >>> sessions = PageSessions("secret", token=None)
    >>> session = sessions.read(sessions.cookie(sessions.new()))
    >>> sessions.is_own(session, sessions.csrf(session)), sessions.read("forged")
    (True, None)
    """

    def __init__(self, secret: str, token: str | None, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.digest(secret.encode(), f"sessions {token or ''}".encode(), hashlib.sha256)
        self._clock = clock
        # Browsers share cookies between the ports of a machine; services with other keys need other names.
        self.cookie_name = f"diptych_{self._sign('name')[:8]}"

    def new(self) -> str:
        """Return a new session."""
        return secrets.token_hex(16)

    def cookie(self, session: str) -> str:
        """Return the cookie with which a session lasts from now on."""
        expiry = int(self._clock()) + SESSION_SECONDS
        return f"{session}.{expiry}.{self._sign(f'session {session} {expiry}')}"

    def read(self, cookie: str | None) -> str | None:
        """Return the session of a cookie, None where it is missing, forged or too old."""
        parts = (cookie or "").split(".")
        if len(parts) != 3:
            return None
        session, expiry, signature = parts
        if not _is_equal(signature, self._sign(f"session {session} {expiry}")):
            return None
        return session if int(expiry) >= self._clock() else None

    def csrf(self, session: str) -> str:
        """Return what requests of this session carry to show that they come from the page itself."""
        return self._sign(f"csrf {session}")

    def is_own(self, session: str, csrf: str | None) -> bool:
        """Say whether a request carries the right value."""
        return _is_equal(csrf or "", self.csrf(session))

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", errors="replace"), hashlib.sha256).hexdigest()


def _is_equal(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", errors="replace"), right.encode())


CSRF_HEADER = "X-Diptych-CSRF"


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
            raise unauthorised("This is not the token of this service.")
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
            needed = "To write, or to read the log, send the header 'Authorization: Bearer TOKEN', or use the page."
            raise unauthorised(needed)
        if not self.sessions.is_own(session, request.headers.get(CSRF_HEADER)):
            detail = f"The header {CSRF_HEADER} is missing or old; take it from GET /v1/session."
            raise Problem(403, "wrong-csrf", detail)


def refuse_other_sites(request: HTTPConnection) -> None:
    """Raise where a browser says that another site's page sends the request."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    is_other = site is not None and site.strip().lower() not in ("same-origin", "none")
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


class AuthMiddleware(HttpMiddleware):
    """Asks for token or session before anything of the request is read, at every address but that for signing in.

    The guards of the routes ask again; this is the one place that no route can forget.
    """

    def __init__(self, app: ASGIApp, credentials: Credentials) -> None:
        super().__init__(app)
        self._credentials = credentials

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == "/metrics" or (path.startswith("/v1") and path != "/v1/session"):
            self._credentials.check_reading(HTTPConnection(scope), is_public=True)
        await self._app(scope, receive, send)
