"""The secrets of a service: where this user keeps them, and which ones are good enough."""

from __future__ import annotations

import hmac
import os
import secrets
import string
from contextlib import suppress
from pathlib import Path

from diptych.atomic_files import atomic_write
from diptych.errors import InvalidInputError

TOKEN_VARIABLE = "DIPTYCH_TOKEN"
_SHORTEST = 16
_LONGEST = 512
_CHARACTERS = frozenset(string.ascii_letters + string.digits + string.punctuation)
_MAKE_ONE = "python -c 'import secrets; print(secrets.token_urlsafe(32))'"


def state_folder() -> Path:
    """Return where this user's programs keep state: ``$XDG_STATE_HOME/diptych`` or ``~/.local/state/diptych``."""
    chosen = os.environ.get("XDG_STATE_HOME")
    return (Path(chosen).expanduser() if chosen else Path.home() / ".local" / "state") / "diptych"


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
    """Return a token that nobody guesses, or raise.

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
