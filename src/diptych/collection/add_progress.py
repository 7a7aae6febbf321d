"""How far an addition has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AddProgress:
    """Told after each batch: ``done`` of ``total`` records are dealt with, and the items ``stored`` are durable.

    Once an id has been in ``stored``, the item survives whatever happens to the process.
    """

    done: int
    total: int
    stored: tuple[str, ...] = ()
