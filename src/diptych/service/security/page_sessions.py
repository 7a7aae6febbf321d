"""Sessions of the page, kept by the browser alone."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

_LIFETIME_SECONDS = 12 * 3600
_FIELDS = 3


class PageSessions:
    """Signs cookies that say a browser was let in, and the values that its scripts send back against forged requests.

    Nothing is remembered: a cookie is an identifier and an expiry under an HMAC, so that sessions cost no memory and
    every process with the same secret accepts them. The key depends on the token as well, so that changing the token
    ends every session.

    >>> from diptych.service.security.page_sessions import PageSessions
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

    @property
    def lifetime_seconds(self) -> int:
        """How long a session lasts after it was last renewed."""
        return _LIFETIME_SECONDS

    def new(self) -> str:
        """Return a new session."""
        return secrets.token_hex(16)

    def cookie(self, session: str) -> str:
        """Return the cookie with which a session lasts from now on."""
        expiry = int(self._clock()) + _LIFETIME_SECONDS
        return f"{session}.{expiry}.{self._sign(f'session {session} {expiry}')}"

    def read(self, cookie: str | None) -> str | None:
        """Return the session of a cookie, None where it is missing, forged or too old."""
        parts = (cookie or "").split(".")
        if len(parts) != _FIELDS:
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
