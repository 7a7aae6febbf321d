"""Which column of a table of clicks means what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from diptych.errors import InvalidInputError

QUERY_NAMES = ("query", "queries", "text", "search", "keywords")
IMAGE_NAMES = ("image", "item", "image_id", "item_id", "image_key", "key", "picture", "photo", "file", "document")
CLICK_NAMES = ("clicks", "click", "click_count", "clickcount", "n_clicks", "count")
TIME_NAMES = ("time", "timestamp", "date", "datetime")

# Tables that hold what was shown, or single events of several kinds, would be counted wrongly row by row.
_EVENT_NAMES = {"shown", "clicked", "position", "kind", "impressions"}


class ClickColumns(NamedTuple):
    """The names, or the places, of the columns; without clicks every row is one click."""

    query: str
    image: str
    clicks: str | None
    time: str | None


def find_columns(names: Sequence[str], source: str) -> ClickColumns | None:
    """Return which of the names mean what, or None where they name no query and image.

    >>> from diptych.data.clicks.columns import find_columns
    >>> find_columns(["Query", "item", "clicks"], "log.csv")
    ClickColumns(query='Query', image='item', clicks='clicks', time=None)
    """
    of = {re.sub(r"[\s_-]+", "_", name.strip()).lower(): name for name in reversed(names)}
    query, image, clicks, time = (_first(of, known) for known in (QUERY_NAMES, IMAGE_NAMES, CLICK_NAMES, TIME_NAMES))
    if query is None or image is None:
        return None
    if clicks is None and _EVENT_NAMES & set(of):
        raise InvalidInputError(
            f"{source} holds events or impressions, not clicks per query and image; export the triads instead "
            "(`diptych clicks export --what triads`)"
        )
    return ClickColumns(query, image, clicks, time)


def _first(of: dict[str, str], known: Sequence[str]) -> str | None:
    return next((of[name] for name in known if name in of), None)
