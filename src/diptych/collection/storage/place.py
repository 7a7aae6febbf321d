"""Where a collection is: its folder, and what has to happen around every change of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, Protocol

from diptych.collection.storage.write_lock import is_awaited, write_lock


class TableCopies(Protocol):
    """Tables whose truth is elsewhere: they are fetched when they are needed, and what is committed is sent on."""

    def fetch(self, table: str) -> bool:
        """Fetch a table that is not on this machine; say whether there is one."""

    def tables(self) -> list[str]:
        """Return the names of all tables."""

    def committed(self, table: str) -> None:
        """Send on what was committed; when this returns, it counts."""

    def tidied(self, table: str, kept_for: timedelta) -> None:
        """Forget versions older than a time, after they were forgotten here."""

    def dropped(self, table: str) -> None:
        """Remove a table that was removed here."""

    def keep_originals(self, files: Mapping[str, Path]) -> None:
        """Keep picture files by their content hashes, for machines that do not have them."""


class Place(Protocol):
    """The folder that is read and written, which may be a copy of a collection elsewhere."""

    @property
    def name(self) -> str:
        """How people call it."""

    @property
    def folder(self) -> Path:
        """The folder, which may be another one later."""

    @property
    def home(self) -> Path:
        """The folder of what belongs to the collection on this machine alone, such as the click log."""

    @property
    def copies(self) -> TableCopies | None:
        """What follows the tables, None where the folder itself is the truth."""

    @property
    def storage_away_seconds(self) -> float | None:
        """For how long the truth could not be looked at, None while it can."""

    def writing(self, wait: float) -> AbstractContextManager[bool]:
        """Be the only writer, or raise after ``wait`` seconds; yields whether another one is to be cut off first."""

    def is_awaited(self) -> bool:
        """Say whether somebody waits to write meanwhile, and may be let in."""

    def has_cut_off(self) -> None:
        """Note that no former writer can commit any more."""

    def layout_written(self) -> None:
        """Send on a layout that was written; when this returns, it counts."""

    def retrievers_deleted(self, kept: Iterable[str]) -> None:
        """Delete saved retrievers elsewhere, too."""

    def original(self, content_hash: str) -> BinaryIO | None:
        """Return a picture file that was kept, None where there is none."""

    def close(self) -> None:
        """End what goes on in the background."""


class LocalPlace:
    """A folder of this machine."""

    copies: TableCopies | None = None
    storage_away_seconds: float | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        """The path of the folder."""
        return str(self.folder)

    @property
    def home(self) -> Path:
        """The folder itself."""
        return self.folder

    @contextmanager
    def writing(self, wait: float) -> Iterator[bool]:
        """Hold the lock of the folder."""
        with write_lock(self.folder / "write.lock", wait):
            yield False

    def is_awaited(self) -> bool:
        """Say whether somebody waits for the lock of the folder."""
        return is_awaited(self.folder / "write.lock")

    def has_cut_off(self) -> None:
        """Do nothing: the lock of a killed process is free."""

    def layout_written(self) -> None:
        """Do nothing: it counts already."""

    def retrievers_deleted(self, kept: Iterable[str]) -> None:
        """Do nothing: they are deleted already."""

    def original(self, content_hash: str) -> BinaryIO | None:
        """Return None: the pictures lie where they lay."""

    def close(self) -> None:
        """Do nothing."""
