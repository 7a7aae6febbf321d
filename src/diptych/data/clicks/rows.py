"""What a reader finds in one row of a table of clicks."""

from __future__ import annotations

from typing import Any, NamedTuple


class TriadRow(NamedTuple):
    """One row as it was found, not yet checked; ``place`` is its line, or its row in a file without lines."""

    place: int
    query: Any
    image: Any
    clicks: Any
    time: Any


class BadRow(NamedTuple):
    """A row that could not be taken apart, and why."""

    place: int
    reason: str
