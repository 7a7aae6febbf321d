"""What a check of a collection found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CheckReport:
    """Whether a collection is whole, and what lies in it unused.

    ``problems`` are items that lack what they need; ``unused`` counts rows of each table that no item uses, which
    interrupted runs, removals and changes leave behind; ``unused_tables`` are those of retrievers no longer in force.
    """

    problems: tuple[str, ...] = ()
    unused: dict[str, int] = field(default_factory=dict)
    unused_tables: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every item has what it needs."""
        return not self.problems
