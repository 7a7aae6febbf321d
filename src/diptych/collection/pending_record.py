"""A record on its way into the store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from diptych.collection.item import Item
from diptych.collection.record import Record


@dataclass(frozen=True)
class PendingRecord:
    """A record that needs more than a look: its item, its file, and the file's status if the file must be read."""

    record: Record
    known: Item | None
    path: Path | None = None
    status: os.stat_result | None = None
