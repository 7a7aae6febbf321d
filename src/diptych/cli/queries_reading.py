"""Queries from a table of clicks, or from the log of a service."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diptych.cli.queries_asked import AskedQueries
from diptych.errors import InvalidInputError

_DATABASES = (".sqlite", ".sqlite3", ".db")


def read_queries(log: Path) -> AskedQueries:
    """Read a file that :func:`diptych.data.clicks.read_clicks` reads, or what was logged for a collection."""
    asked = _from_service(log) if log.is_dir() or log.suffix.lower() in _DATABASES else _from_table(log)
    if not len(asked.texts):
        raise InvalidInputError(f"{log} holds no query; a log begins with the first search")
    return asked


def _from_table(file: Path) -> AskedQueries:
    from diptych.data.clicks import read_clicks

    log = read_clicks(file)
    clicks = np.bincount(log.query_ids, weights=log.clicks, minlength=len(log.queries)).astype(np.float64)
    return AskedQueries(log.queries, clicks)


def _from_service(place: Path) -> AskedQueries:
    from contextlib import closing

    from diptych.cli.collection_place import find_collection
    from diptych.service.clicks.database import connect
    from diptych.service.clicks.opening import click_log_path
    from diptych.service.clicks.query_counts import query_counts

    file = click_log_path(find_collection(place).folder) if place.is_dir() else place
    if not file.is_file():
        raise InvalidInputError(f"nothing was logged in {file}; searches in `diptych serve` are, unless told not to")
    with closing(connect(file)) as connection:
        rows = query_counts(connection)
    counts = np.array([row[1:] for row in rows], dtype=np.float64).reshape(len(rows), 4)
    searches, answered, unmatched, clicks = counts.T
    return AskedQueries([row.query for row in rows], clicks, searches, answered, unmatched)
