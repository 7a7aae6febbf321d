"""The click log that a command means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.collection_place import find_collection
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.service.clicks import ClickLog


def open_click_log(collection: Path | None) -> ClickLog:
    """Open the log of the collection that was named or that is meant; one that was never begun is not made."""
    from diptych.service.clicks import ClickLog
    from diptych.service.clicks.opening import click_log_path

    folder = find_collection(collection).folder
    path = click_log_path(folder)
    if not path.is_file():
        raise InvalidInputError(f"nothing was logged for {folder}; searches in `diptych serve` are, unless told not to")
    return ClickLog(path)
