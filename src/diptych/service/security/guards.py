"""Who may use the service and by which names of it, and what every response tells browsers."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diptych.service.problems import HttpMiddleware, Problem
from diptych.service.security.tokens import PageSessions
from diptych.service.settings import Settings

CSRF_HEADER = "X-Diptych-CSRF"


class Credentials:
    """Checks tokens, page sessions, and that a browser's request comes from the page itself."""

    def __init__(self, settings: Settings) -> None:
        self._token_digest = None if settings.token is None else _digest(settings.token)
        self.sessions = PageSessions(settings.session_secret, settings.token, settings.session_folder)

    def is_token(self, given: str) -> bool:
        """Return True if this is the token, in a time that does not depend on how much of it is right."""
        return self._token_digest is not None and hmac.compare_digest(_digest(given), self._token_digest)

    def has_token(self, request: HTTPConnection) -> bool:
        """Return True if a request brings the token; a wrong one is refused."""
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

    def is_known(self, request: HTTPConnection) -> bool:
        """Return True if a request brings the token or has a session."""
        return self.has_token(request) or self.session(request) is not None

    def check_reading(self, request: HTTPConnection, *, is_public: bool) -> None:
        """Raise unless a request may read."""
        refuse_other_sites(request)
        if not self.is_known(request) and is_public:
            raise unauthorised("This service needs its token: sign in on the page, or send it as bearer token.")

    def check_changing(self, request: HTTPConnection) -> None:
        """Raise unless a request may change something: it has the token, or is sent by the page itself."""
        refuse_other_sites(request)
        if self.has_token(request):
            return
        session = self.session(request)
        if session is None:
            needed = (
                "To write, or to read the log, sign in on the page, or send the header 'Authorization: Bearer TOKEN'."
            )
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


_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<name>[A-Za-z0-9_.-]+))(?::\d{1,5})?")


class HostCheckMiddleware(HttpMiddleware):
    """Refuses requests whose Host header is not a name of this service.

    Otherwise any web site could let its own name point at this machine and read what is served here (DNS rebinding).
    Beyond this machine every address in numbers is taken as well, because only names can be made to point elsewhere.
    """

    def __init__(self, app: ASGIApp, allowed: Iterable[str] = (), *, is_public: bool = False) -> None:
        super().__init__(app)
        self._allowed = _THIS_MACHINE | {name.lower().strip("[]").rstrip(".") for name in allowed}
        self._is_public = is_public

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1:
            raise Problem(400, "no-host", "A request names the host it is for, once, in the header Host.")
        host = host_name(hosts[0].decode("latin-1"))
        if host is None:
            raise Problem(400, "malformed-host", "The header Host is no name of a host.")
        if host not in self._allowed and not (self._is_public and _is_address(host)):
            detail = "This service does not go by that name; it can be allowed with --allow-host."
            raise Problem(421, "wrong-host", detail)
        await self._app(scope, receive, send)


def host_name(header: str) -> str | None:
    """Return the name in a Host header, without port and brackets; None where there is none.

    >>> from diptych.service.security.guards import host_name
    >>> host_name("LOCALHOST:8765"), host_name("[::1]:80"), host_name("a b")
    ('localhost', '::1', None)
    """
    match = _HOST.fullmatch(header.strip())
    return None if match is None else (match["v6"] or match["name"]).lower().rstrip(".")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "manifest-src 'self'"
)

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class SecurityHeadersMiddleware(HttpMiddleware):
    """Puts the headers on every answer, errors included."""

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                # What does not say how long it may be kept is not kept: answers are about private pictures.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)
