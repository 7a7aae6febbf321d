"""Headers: the hosts that requests may name, and what every response tells browsers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diptych.service.problems import HttpMiddleware, Problem

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

    >>> from diptych.service.security.headers import host_name
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
