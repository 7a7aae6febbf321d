"""Digests of large files, computed once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from diptych.data.folders import cache_folder


def digest_of_files(files: Iterable[Path]) -> str:
    """Return a digest of the contents of files, whatever their names.

    The digest of each file is remembered in the cache folder by path, inode, size and times of change, so that
    gigabytes of weights are read through once and not at every start.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.encoders.network.file_digest import digest_of_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, two = Path(folder) / "one", Path(folder) / "two"
    ...     _ = one.write_text("same"), two.write_text("same")
    ...     digest_of_files([one]) == digest_of_files([two]) != digest_of_files([one, two])
    True
    """
    parts = [_remembered_digest(file) for file in files]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _remembered_digest(file: Path) -> str:
    state = file.stat()
    # A copy may keep size and time of the file it replaces; the time of the last change to the entry cannot be set.
    return _digest_in_state(file, (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))


# Every search asks, and even a look at the note would be a fourth of its time.
@lru_cache(maxsize=256)
def _digest_in_state(file: Path, facts: tuple[int, ...]) -> str:
    key = hashlib.sha256("\0".join(map(str, (file.resolve(), *facts))).encode()).hexdigest()
    note = cache_folder() / "networks" / "digests" / key
    with suppress(OSError):
        remembered = note.read_text(encoding="ascii")
        if len(remembered) == hashlib.sha256().digest_size * 2:
            return remembered
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    # Where nothing can be written, the file is read again the next time; that is all.
    with suppress(OSError):
        _write_whole(note, digest)
    return digest


def _write_whole(note: Path, text: str) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=note.parent)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(text)
    os.replace(draft, note)
