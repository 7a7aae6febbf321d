"""Made-up searches, written to the file of a click log as `diptych serve` writes them, but all at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from diptych.collection.learning import SearchLog
from diptych.service.clicks.database import connect

_SEARCH = "INSERT INTO searches VALUES (?, ?, ?, ?, NULL, 1, 'images', 1, 0, 0.5, ?, ?)"
_PAGE = "INSERT INTO pages VALUES (?, 1, ?, ?, ?)"
_CLICK = "INSERT INTO clicks (search, item, position, kind, time) VALUES (?, ?, ?, 'open', ?)"


def write_click_log(log: SearchLog, path: Path) -> None:
    """Write searches that showed their items from the first position on."""
    with closing(connect(path)) as connection:
        # Nothing is lost that could not be made up again.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO retrievers VALUES (1, 'default', 'f')")
        connection.executemany("INSERT INTO queries VALUES (?, ?)", enumerate(log.queries, start=1))
        has_click = np.zeros(len(log), dtype=bool)
        has_click[log.searches[log.clicked]] = True
        connection.executemany(_SEARCH, _searches(log, has_click))
        connection.executemany(_PAGE, _pages(log))
        connection.executemany(_CLICK, _clicks(log))
        connection.execute("COMMIT")


def visitor_name(number: int) -> str:
    """Return the number of a visitor as the log has it."""
    return number.to_bytes(8, "big").hex()


def _searches(log: SearchLog, has_click: np.ndarray) -> Iterator[tuple[object, ...]]:
    columns = log.times.tolist(), log.query_ids.tolist(), has_click.tolist(), log.visitors.tolist()
    for number, (time, query, clicked, visitor) in enumerate(zip(*columns, strict=True), start=1):
        who = None if visitor < 0 else bytes.fromhex(visitor_name(visitor))
        yield number, number.to_bytes(16, "big"), time, query + 1, clicked, who


def _pages(log: SearchLog) -> Iterator[tuple[object, ...]]:
    ends = np.searchsorted(log.searches, np.arange(len(log) + 1)).tolist()
    for search, time in enumerate(log.times.tolist()):
        items = [log.items[item] for item in log.item_ids[ends[search] : ends[search + 1]].tolist()]
        yield search + 1, len(items), time, json.dumps(items)


def _clicks(log: SearchLog) -> Iterator[tuple[object, ...]]:
    rows = np.flatnonzero(log.clicked)
    columns = log.searches[rows].tolist(), log.item_ids[rows].tolist(), log.positions[rows].tolist()
    for search, item, position in zip(*columns, strict=True):
        yield search + 1, log.items[item], position, float(log.times[search])
