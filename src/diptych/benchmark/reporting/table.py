"""A table of text, before it is HTML, Markdown or LaTeX."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Headings and rows of text; the first ``n_names`` columns are names, the others numbers."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_names: int = 1
    notes: tuple[str, ...] = ()
