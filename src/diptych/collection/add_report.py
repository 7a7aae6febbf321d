"""What an addition did."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class AddReport:
    """What became of each picture and text that was to be added.

    ``added``, ``updated``, ``renamed`` and ``unchanged`` count items; ``skipped`` gives the reason for each path that
    cannot be used; ``duplicates`` names, for each added path, a stored path with the same content; ``removed`` lists
    the paths that ``refresh`` found missing.
    """

    added: int = 0
    updated: int = 0
    renamed: int = 0
    unchanged: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    duplicates: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def changed(self) -> int:
        """How many items were written."""
        return self.added + self.updated + self.renamed
