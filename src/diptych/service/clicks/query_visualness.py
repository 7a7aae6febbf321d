"""How visual the queries of a log are."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from diptych.errors import MissingPackageError
from diptych.service.clicks.queries import is_plain

if TYPE_CHECKING:
    from diptych.encoders import Visualness, VisualQuery


@lru_cache(maxsize=1 << 16)
def query_visualness(query: str) -> VisualQuery | None:
    """Return how visual a query is; None for one that is not in words, or where the list of concepts is missing.

    >>> from diptych.service.clicks.query_visualness import query_visualness
    >>> query_visualness("a red tulip").marked, query_visualness("item:17")
    ('a [red] [tulip]', None)
    """
    measure = _visualness() if is_plain(query, None) else None
    return None if measure is None else measure.of(query)


@cache
def _visualness() -> Visualness | None:
    # Reading the names of all concepts takes a second or two, which only those wait for who look at a log.
    from diptych.encoders import Visualness

    try:
        return Visualness()
    except MissingPackageError:
        return None
