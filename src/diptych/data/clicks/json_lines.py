"""Clicks with one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from diptych.data.clicks.columns import ClickColumns, find_columns
from diptych.data.clicks.delimited import open_text
from diptych.data.clicks.rows import BadRow, TriadRow


def read_json_lines(path: Path) -> Iterator[TriadRow | BadRow]:
    """Yield the triad of every line; the names of an object's values may differ from line to line."""
    found: dict[tuple[str, ...], ClickColumns | None] = {}
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield BadRow(number, f"it is not valid JSON ({error})")
                continue
            names = tuple(entry) if isinstance(entry, dict) else ()
            if names not in found:
                found[names] = find_columns(names, str(path))
            columns = found[names]
            if columns is None:
                yield BadRow(number, 'it is no object such as {"query": "red car", "image": "1.jpg", "clicks": 2}')
                continue
            yield TriadRow(
                number,
                entry[columns.query],
                entry[columns.image],
                1 if columns.clicks is None else entry[columns.clicks],
                None if columns.time is None else entry[columns.time],
            )
