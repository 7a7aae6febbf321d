"""Which of two retrievers each result of a page came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diptych.metrics.interleaving import Team


@dataclass(frozen=True, slots=True)
class Draft:
    """The teams of the results of one page, in their order, and what they were drawn with.

    ``draw`` has the form of the id of a search: pages that are drawn with the same one fit together.
    """

    interleaving: int
    draw: str
    teams: Sequence[Team]
