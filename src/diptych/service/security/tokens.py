"""The secrets of a service: where this user keeps them, which ones are good enough, and sessions of the page."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import string
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from diptych.atomic_files import atomic_write
from diptych.data.folders import state_folder
from diptych.errors import InvalidInputError

TOKEN_VARIABLE = "DIPTYCH_TOKEN"
_SHORTEST = 16
_LONGEST = 512
_CHARACTERS = frozenset(string.ascii_letters + string.digits + string.punctuation)
_MAKE_ONE = "python -c 'import secrets; print(secrets.token_urlsafe(32))'"


def own_token_file() -> Path:
    """Return the file with the token that services of this user share unless they are given another."""
    return state_folder() / "token"


def client_token() -> str | None:
    """Return the token that a program of this user may use: ``DIPTYCH_TOKEN``, or the one this machine keeps."""
    given = os.environ.get(TOKEN_VARIABLE)
    if given:
        return given.strip()
    try:
        return own_token_file().read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def configured_token(file: Path | None) -> str | None:
    """Return the token that a service was given, in a file or in ``DIPTYCH_TOKEN``; None where there is none."""
    if file is not None:
        try:
            return usable_token(file.read_text(encoding="utf-8").strip(), str(file))
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidInputError(f"the token cannot be read from {file}: {problem}; name a text file") from None
    given = os.environ.get(TOKEN_VARIABLE)
    return None if given is None else usable_token(given.strip(), TOKEN_VARIABLE)


def usable_token(token: str, origin: str) -> str:
    """Return a token that is long enough not to be guessed, or raise.

    >>> from diptych.service.security.tokens import usable_token
    >>> usable_token("secret", "DIPTYCH_TOKEN")
    Traceback (most recent call last):
    diptych.errors.InvalidInputError: the token in DIPTYCH_TOKEN has 6 characters, it needs 16 to 512; make one with: \
python -c 'import secrets; print(secrets.token_urlsafe(32))'
    """
    if not _SHORTEST <= len(token) <= _LONGEST:
        wrong = f"{len(token)} characters, it needs {_SHORTEST} to {_LONGEST}"
    elif not _CHARACTERS.issuperset(token):
        wrong = "other characters than letters, digits and punctuation of ASCII"
    else:
        return token
    raise InvalidInputError(f"the token in {origin} has {wrong}; make one with: {_MAKE_ONE}")


def no_token_message(host: str) -> str:
    """Return what to do before others than this machine may reach the service."""
    return (
        f"a service that others can reach ({host}) needs a token: put one into a file with {_MAKE_ONE} > token, "
        f"then start it with --token-file token; or set {TOKEN_VARIABLE}"
    )


def own_token() -> str:
    """Return the token that this user's services share on this machine; the first of them makes it."""
    try:
        return _stored_secret(own_token_file())
    except OSError as problem:
        raise InvalidInputError(
            f"the token cannot be kept in {own_token_file()} ({problem.strerror or problem}); "
            f"set {TOKEN_VARIABLE}, or name a file with --token-file"
        ) from None


def session_secret(token: str | None) -> str:
    """Return what signs page sessions, kept so that a restart signs nobody out; where it cannot be, it is new.

    Services that were given the same token sign alike, so that any of them knows the visitors of the others.
    """
    if token is not None:
        return hmac.digest(token.encode(), b"page sessions", "sha256").hex()
    with suppress(OSError):
        return _stored_secret(state_folder() / "session-secret")
    return secrets.token_urlsafe(32)


def session_folder() -> Path | None:
    """Return where sessions that ended are noted, beside what signs them; None where nothing can be kept."""
    folder = state_folder() / "sessions"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder
    return None


def _stored_secret(file: Path) -> str:
    """Return the secret in a file that only this user can read; make it where there is none."""
    with suppress(FileNotFoundError):
        return _read_private(file)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Two services may start at once; the one that comes second takes the secret of the first.
    with suppress(FileExistsError), atomic_write(file, private=True, replace=False) as draft:
        draft.write_text(secrets.token_urlsafe(32), encoding="utf-8")
    return _read_private(file)


def _read_private(file: Path) -> str:
    text = file.read_text(encoding="utf-8").strip()
    if os.stat(file).st_mode & 0o077:
        file.chmod(0o600)
    if len(text) < _SHORTEST:
        raise OSError(None, "it is too short; delete it")
    return text


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
        """Remember a name; return True if it is new."""
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

    >>> from diptych.service.security.tokens import PageSessions
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

    def key(self) -> str:
        """Return a key that begins one session soon."""
        return self._sealed("key", secrets.token_hex(16), int(self._clock()) + KEY_SECONDS)

    def begin(self, key: str) -> str | None:
        """Return the session that a key begins, None where it was used or is too old."""
        name = self._unsealed("key", key)
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
        return self._unsealed("session", cookie or "")

    def csrf(self, session: str) -> str:
        """Return what requests of this session carry to show that they come from the page itself."""
        return self._sign(f"csrf {session}")

    def is_own(self, session: str, csrf: str | None) -> bool:
        """Return True if a request carries the right value."""
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
