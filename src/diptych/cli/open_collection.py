"""Opening the collection a command means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.collection_place import find_collection
from diptych.cli.shown_path import shown_path
from diptych.cli.terminal import notes

if TYPE_CHECKING:
    from diptych.collection import Collection


def open_collection(named: Path | None, *, quiet: bool = False) -> Collection:
    """Open the collection that was named or that is meant, and say which when that is not obvious."""
    from diptych.collection import Collection

    place = find_collection(named)
    if place.reason and not quiet:
        notes().print(f"collection: {shown_path(place.folder)} ({place.reason})", soft_wrap=True)
    return Collection.open(place.folder)
