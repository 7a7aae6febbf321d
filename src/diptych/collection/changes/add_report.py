"""What is told while pictures and texts are added, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class AddProgress:
    """Told after each batch: ``done`` of ``total`` records are dealt with, and the items ``stored`` are durable.

    Once an id has been in ``stored``, the item survives whatever happens to the process. ``slowest`` is the stage that
    the others have waited for: reading, encoding or writing; empty before anything was done.
    """

    done: int
    total: int
    stored: tuple[str, ...] = ()
    slowest: str = ""


Progress = Callable[[AddProgress], None]


@dataclass
class AddReport:
    """What became of each picture and text that was to be added.

    ``added``, ``updated``, ``renamed`` and ``unchanged`` count items; ``skipped`` gives the reason for each path that
    cannot be used; ``duplicates`` names, for each added path, a stored path with the same content; ``removed`` lists
    the paths that ``refresh`` found missing. ``described`` counts the unchanged items whose facts were read, without
    encoding anything; ``unclear`` says of which paths some facts could not be read, and why.
    """

    added: int = 0
    updated: int = 0
    renamed: int = 0
    unchanged: int = 0
    described: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    duplicates: dict[str, str] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def changed(self) -> int:
        """How many items were written."""
        return self.added + self.updated + self.renamed

    def include(self, later: AddReport) -> None:
        """Count what became of further pictures and texts as well."""
        for name in ("added", "updated", "renamed", "unchanged", "described"):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        for name in ("skipped", "duplicates", "unclear"):
            getattr(self, name).update(getattr(later, name))
        self.removed += later.removed
