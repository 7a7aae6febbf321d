"""Checking and cleaning a store."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.collection.catalogue import Catalogue, text_hash
from diptych.collection.check_report import CheckReport
from diptych.collection.contract import Side
from diptych.collection.layout import Layout
from diptych.collection.store import Store
from diptych.collection.tables import features_table, points_table

_SIDES: tuple[Side, Side] = ("image", "text")


class Maintenance:
    """Looks for rows that items lack and for rows that no item uses."""

    def __init__(self, store: Store, layout: Layout, catalogue: Catalogue) -> None:
        self._store = store
        self._layout = layout
        self._used = {
            "image": set(catalogue.by_content),
            "text": {text_hash(text) for _, text in catalogue.captions.values()},
        }
        self._captions = set(catalogue.captions)

    def check(self) -> CheckReport:
        """Compare the tables with the items."""
        problems = []
        for side in _SIDES:
            there = set(self._store.vector_keys(points_table(self._layout.retriever, side)))
            lacking = len(self._used[side] - there)
            if lacking:
                what = "pictures" if side == "image" else "captions"
                problems.append(f"{lacking} {what} have no points and are not found; add or refresh them")
        unused = {name: len(rows) for name, rows in self._unused_rows().items() if rows}
        return CheckReport(tuple(problems), unused, tuple(self._unused_tables()))

    def clean(self) -> None:
        """Remove what no item uses and join small files; the caller is the only writer."""
        for name in self._unused_tables():
            self._store.drop(name)
        for name, rows in self._unused_rows().items():
            if name == "captions":
                self._store.delete_captions(rows)
            elif name == "thumbnails":
                self._store.delete_thumbnails(rows)
            else:
                self._store.delete_vectors(name, rows)
        self._store.compact(everything=True)

    def _unused_rows(self) -> dict[str, Sequence[str]]:
        rows: dict[str, Sequence[str]] = {
            "captions": [key for key in self._store.caption_ids() if key not in self._captions],
            "thumbnails": [key for key in self._store.thumbnail_keys() if key not in self._used["image"]],
        }
        for name, side in self._tables_in_force().items():
            rows[name] = [key for key in self._store.vector_keys(name) if key not in self._used[side]]
        return rows

    def _tables_in_force(self) -> dict[str, Side]:
        names = [self._layout.retriever, *([self._layout.pending] if self._layout.pending else [])]
        return {
            table(retriever, side): side
            for retriever in names
            for side in _SIDES
            for table in (features_table, points_table)
        }

    def _unused_tables(self) -> list[str]:
        return [name for name in self._store.vector_tables() if name not in self._tables_in_force()]
