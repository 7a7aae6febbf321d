"""Visitors of a click log: numbers that tell which searches are one person's, and not whose."""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from pathlib import Path

from diptych.atomic_files import atomic_write

# Numbers of visitors compare within such a period, counted from 1970, and mean nothing after it.
SALT_DAYS = 30
_VISITOR_BYTES, _SALT_BYTES = 8, 32


def visitor_number(folder: Path, visitor: str, time: float) -> bytes | None:
    """Return a keyed digest of who searched, or None where no key can be kept in the folder.

    The key, the salt, is drawn anew for every period of thirty days and the one before is deleted. Without it a number
    cannot be computed from a session again, nor can numbers of two periods be brought together.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.service.clicks.visitors import SALT_DAYS, visitor_number
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     now, again, later = (visitor_number(Path(folder), "ann", days * 86_400) for days in (0, 1, SALT_DAYS))
    ...     len(now), now == again, now == later, len(list(Path(folder).iterdir()))
    (8, True, False, 1)
    """
    period = int(time // (SALT_DAYS * 86_400))
    # What is searched is logged all the same where the disk is full.
    with suppress(OSError):
        # Read each time, so that all processes of a service change to a new salt at once.
        return hmac.digest(_salt(folder, period), visitor.encode(errors="backslashreplace"), "sha256")[:_VISITOR_BYTES]
    return None


def _salt(folder: Path, period: int) -> bytes:
    file = folder / f"visitors-{period}.salt"
    with suppress(FileNotFoundError):
        return file.read_bytes()
    # Two processes may begin a period at once; the one that comes second takes the salt of the first.
    with suppress(FileExistsError), atomic_write(file, private=True, replace=False) as draft:
        draft.write_bytes(secrets.token_bytes(_SALT_BYTES))
    forget_salts(folder, before=period)
    return file.read_bytes()


def forget_salts(folder: Path, before: int | None = None) -> None:
    """Delete all salts, or those of periods before one, so that nobody can compute their numbers again."""
    for file in folder.glob("visitors-*.salt"):
        if before is None or int(file.stem.removeprefix("visitors-")) < before:
            file.unlink(missing_ok=True)
