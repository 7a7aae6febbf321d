"""Sessions of the page: how a browser is let in, what its requests carry, and how a session ends."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# How long a session lasts after it was last renewed, and how long a key waits for the browser that it is for.
SESSION_SECONDS = 12 * 3600
KEY_SECONDS = 600
# However often it is renewed: a session that ended on one machine may still be known to others that sign alike.
LONGEST_SESSION_SECONDS = 7 * 24 * 3600


class SpentNames:
    """Sessions that were ended and keys that were used, remembered until they would have run out by themselves.

    Each is an empty file, so that every process of a service knows of it and only the first one uses a key; without a
    folder they are in the memory of this process.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names if self._folder is None else os.path.lexists(self._folder / name)

    def spend(self, name: str) -> bool:
        """Remember a name, and say whether nobody did before."""
        if self._folder is None:
            is_new = name not in self._names
            self._names.add(name)
            return is_new
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._forget_old(self._folder)
        try:
            os.close(os.open(self._folder / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    @staticmethod
    def _forget_old(folder: Path) -> None:
        oldest = time.time() - LONGEST_SESSION_SECONDS - KEY_SECONDS
        for entry in os.scandir(folder):
            # Another process may tidy up as well.
            with suppress(FileNotFoundError):
                if entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)


class PageSessions:
    """Signs cookies that say a browser was let in, and the values that its scripts send back against forged requests.

    A cookie is an identifier, which says when the session began, and an expiry under an HMAC: every process with the
    same secret accepts it, and changing the token, on which the key depends as well, ends all of them. Only what has
    ended is remembered.

    >>> from diptych.service.security.sessions import PageSessions
    >>> sessions = PageSessions("secret", token=None)
    >>> cookie = sessions.cookie(sessions.begin(sessions.key()))
    >>> session = sessions.read(cookie)
    >>> sessions.is_own(session, sessions.csrf(session)), sessions.read("forged")
    (True, None)
    >>> sessions.end(session)
    >>> sessions.read(cookie) is None
    True
    """

    def __init__(
        self, secret: str, token: str | None, folder: Path | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._key = hmac.digest(secret.encode(), f"sessions {token or ''}".encode(), hashlib.sha256)
        self._clock = clock
        self._spent = SpentNames(folder)
        # Browsers share cookies between the ports of a machine; services with other keys need other names.
        self.cookie_name = f"diptych_{self._sign('name')[:8]}"

    def new(self) -> str:
        """Return a new session."""
        return f"{secrets.token_hex(16)}-{int(self._clock())}"

    def key(self, *, own_user: bool = False) -> str:
        """Return a key that begins one session soon; with ``own_user`` no other user of this machine can use it."""
        expiry = int(self._clock()) + KEY_SECONDS
        return self._sealed("own key" if own_user else "key", secrets.token_hex(16), expiry)

    def begin(self, key: str, *, is_own_user: bool = True) -> str | None:
        """Return the session that a key begins, None where it was used, is too old or is for somebody else."""
        name = self._unsealed("key", key) or (self._unsealed("own key", key) if is_own_user else None)
        return self.new() if name is not None and self._spent.spend(name) else None

    def end(self, session: str) -> None:
        """Let a session end, wherever its cookie is."""
        self._spent.spend(session)

    def cookie(self, session: str) -> str:
        """Return the cookie with which a session lasts from now on."""
        begun = int(session.rpartition("-")[2])
        expiry = min(int(self._clock()) + SESSION_SECONDS, begun + LONGEST_SESSION_SECONDS)
        return self._sealed("session", session, expiry)

    def read(self, cookie: str | None) -> str | None:
        """Return the session of a cookie, None where it is missing, forged, too old or was ended."""
        name = self._unsealed("session", cookie or "")
        # Older versions did not say when a session began.
        return name if name is not None and "-" in name else None

    def csrf(self, session: str) -> str:
        """Return what requests of this session carry to show that they come from the page itself."""
        return self._sign(f"csrf {session}")

    def is_own(self, session: str, csrf: str | None) -> bool:
        """Say whether a request carries the right value."""
        return _is_equal(csrf or "", self.csrf(session))

    def _sealed(self, purpose: str, name: str, expiry: int) -> str:
        return f"{name}.{expiry}.{self._sign(f'{purpose} {name} {expiry}')}"

    def _unsealed(self, purpose: str, sealed: str) -> str | None:
        parts = sealed.split(".")
        if len(parts) != 3:
            return None
        name, expiry, signature = parts
        if not _is_equal(signature, self._sign(f"{purpose} {name} {expiry}")):
            return None
        return name if int(expiry) >= self._clock() and name not in self._spent else None

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", errors="replace"), hashlib.sha256).hexdigest()


def _is_equal(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", errors="replace"), right.encode())
