"""The smallest piece of work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Unit:
    """One method on one fold of one task."""

    task: str
    fold: int
    method: str

    def __str__(self) -> str:
        return f"{self.task}, {self.method}, fold {self.fold}"
