"""A collection that is being served."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from diptych.collection import Collection


@dataclass(frozen=True)
class HostedCollection:
    """A collection under the name that addresses call it by."""

    name: str
    collection: Collection

    @property
    def state_folder(self) -> Path:
        """Where the service keeps what belongs to this collection: the click log, jobs, maps."""
        return self.collection.folder / "service"

    @property
    def index_bytes(self) -> int:
        """The size of the search indexes on disk."""
        return sum(path.stat().st_size for path in (self.collection.folder / "index").rglob("*") if path.is_file())
