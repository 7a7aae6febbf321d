"""No client may starve the others."""

from __future__ import annotations

import math
from ipaddress import IPv6Address, ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from diptych.service.problem import Problem
from diptych.service.problem_answers import ProblemResponse
from diptych.service.security.token_buckets import TokenBuckets

# What a page loads many of at once and what costs next to nothing.
_CHEAP_COST = 0.05
_CHEAP_PREFIXES = ("/static/",)
_CHEAP_SUFFIXES = ("/thumbnail",)
_FREE = ("/health", "/ready")
_NETWORK_BITS = 64


class RateLimit:
    """Answers 429 to clients that ask faster than they may, and says when to come back."""

    def __init__(self, app: ASGIApp, rate: float, burst: int) -> None:
        self._app = app
        self._buckets = TokenBuckets(rate, max(burst, 1))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a client that has not asked too much."""
        if scope["type"] == "http" and scope["path"] not in _FREE:
            seconds = self._buckets.take(client_network(scope), _cost(scope["path"]))
            if seconds > 0:
                await ProblemResponse(_too_many(seconds))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def client_network(scope: Scope) -> str:
    """Return who asks: the address, or the network of an IPv6 address, of which one client has as many as it likes."""
    client = scope.get("client")
    address = client[0] if client else ""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return str(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Address(int(parsed) >> _NETWORK_BITS << _NETWORK_BITS))
    return str(parsed)


def _cost(path: str) -> float:
    is_cheap = path.startswith(_CHEAP_PREFIXES) or path.endswith(_CHEAP_SUFFIXES)
    return _CHEAP_COST if is_cheap else 1.0


def _too_many(seconds: float) -> Problem:
    wait = str(math.ceil(seconds))
    return Problem(429, "too-many-requests", f"Too many requests; go on in {wait} s.", headers={"Retry-After": wait})
