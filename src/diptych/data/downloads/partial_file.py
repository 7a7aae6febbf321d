"""A file that is still being transferred, and what is needed to go on with it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Version:
    """Which version of the remote file the bytes are of: its validator (an ETag or a date) and its size."""

    url: str
    validator: str = ""
    size: int | None = None


class PartialFile:
    """The bytes got so far, in ``<name>.part``, and the version they belong to, in ``<name>.part.json``.

    Bytes of two versions are never mixed: a new version starts with an empty file, and is noted after the old bytes are
    gone and before the first new ones come, so that a run killed at any moment can be continued.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._bytes = target.with_name(f"{target.name}.part")
        self._note = target.with_name(f"{target.name}.part.json")

    @property
    def size(self) -> int:
        """The number of bytes that are here."""
        try:
            return self._bytes.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def version(self) -> Version | None:
        """The version that the bytes are of; None when there are none that can be trusted."""
        try:
            return Version(**json.loads(self._note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def restart(self, version: Version) -> None:
        """Drop what is here and expect the bytes of ``version``."""
        self._bytes.parent.mkdir(parents=True, exist_ok=True)
        self._bytes.write_bytes(b"")
        draft = self._note.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(version)), encoding="utf-8")
        os.replace(draft, self._note)

    def append(self, block: bytes) -> None:
        """Add bytes at the end."""
        with self._bytes.open("ab") as file:
            file.write(block)

    def discard(self) -> None:
        """Forget everything."""
        self._bytes.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    @property
    def path(self) -> Path:
        """Where the bytes are."""
        return self._bytes

    def finish(self) -> None:
        """Give the file its name, at once and whole."""
        with self._bytes.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(self._bytes, self._target)
        self._note.unlink(missing_ok=True)
