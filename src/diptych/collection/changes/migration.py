"""Collections of former formats: brought to the present one, in place, without encoding anything again."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from diptych.collection.storage.layout import FORMAT_VERSION, FORMER_VERSIONS, Layout, write_lock
from diptych.collection.storage.store import Store


@dataclass(frozen=True)
class MigrationReport:
    """The format of a collection before and after."""

    folder: Path
    before: int
    after: int

    @property
    def has_changed(self) -> bool:
        """Whether there was anything to do."""
        return self.before != self.after


def migrate_collection(folder: Path, write_wait: float = 0.0) -> MigrationReport:
    """Bring a collection to the present format.

    Tables and indexes are added beside what is there, and the last step replaces ``collection.json``: until then the
    collection is of its former format, whole, and a run that was interrupted is simply repeated.
    """
    layout = Layout.read(folder, former=True)
    with write_lock(folder / "write.lock", write_wait):
        before = _format_version(folder)
        if before in FORMER_VERSIONS:
            Store(layout.store).prepare()
            # Another writer may have changed it before the lock was held.
            Layout.read(folder, former=True).write()
            # Its indexes of points are of no use any more.
            shutil.rmtree(layout.index, ignore_errors=True)
    return MigrationReport(folder, before, FORMAT_VERSION)


def _format_version(folder: Path) -> int:
    return int(json.loads((folder / "collection.json").read_text(encoding="utf-8"))["format_version"])
