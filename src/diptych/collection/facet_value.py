"""One value of a facet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FacetValue:
    """A value, how many items have it, and the filter that finds them."""

    value: str | int | float | bool
    count: int
    filter: str
