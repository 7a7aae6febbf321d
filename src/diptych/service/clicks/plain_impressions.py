"""What plain searches for pictures showed, and what of it was clicked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from diptych.service.clicks.database import connect, unreadable

Row = tuple[str, str, int, int, int]

_ROWS = """
SELECT queries.text, shown_item.value, first + shown_item.key, count(DISTINCT searches.number),
    count(DISTINCT (SELECT clicks.search FROM clicks WHERE clicks.search = searches.number
        AND clicks.position = first + shown_item.key AND clicks.item = shown_item.value AND kind <> 'less_like'))
FROM searches JOIN pages ON pages.search = searches.number JOIN queries ON queries.number = query,
    json_each(pages.items) AS shown_item
WHERE plain AND target = 'images'
GROUP BY searches.query, shown_item.value, first + shown_item.key
ORDER BY searches.query, first + shown_item.key, shown_item.value
"""


def plain_impressions(path: Path) -> Iterator[Row]:
    """Yield (query, item, position, times shown, times clicked) of a click log's file.

    Only searches for pictures by words alone count: what was clicked for a picture, or for words with others
    subtracted, says nothing about the words. All retrievers are taken together, since a click at a position is worth
    the same whoever put the item there.
    """
    try:
        with closing(connect(path)) as connection:
            yield from connection.execute(_ROWS)
    except sqlite3.Error as error:
        raise unreadable(path, error) from error
