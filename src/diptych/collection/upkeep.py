"""Looking after a collection: what is in it, whether it is whole, what it can give away."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection import exporting, opening
from diptych.collection.catalogue import Catalogue
from diptych.collection.check_report import CheckReport
from diptych.collection.contract import SIDES
from diptych.collection.duplicate_group import DuplicateGroup
from diptych.collection.duplicates import exact_groups, near_groups
from diptych.collection.index_cache import IndexCache
from diptych.collection.item import iso_time
from diptych.collection.live_state import LiveState
from diptych.collection.maintenance import Maintenance
from diptych.collection.retriever_changes import RetrieverChanges
from diptych.collection.status import Status
from diptych.collection.tables import features_table, points_table
from diptych.errors import InvalidInputError


class Upkeep:
    """Counts, checks, cleans and exports what a collection holds."""

    def __init__(self, state: LiveState) -> None:
        self._state = state
        # The last answer of unsearchable, and what it was about.
        self._counted: tuple[ReferenceType[Catalogue], str, int] | None = None
        self._unsearchable = 0

    def status(self) -> Status:
        """Return counts, sizes, and whether a change of retriever is unfinished."""
        self._state.check_layout()
        catalogue, layout, store = self._state.catalogue(), self._state.layout, self._state.store
        pending = layout.pending
        width, kind = self._form_of_points() or (0, np.dtype(np.float32))
        return Status(
            folder=str(layout.folder),
            root=str(self._state.root.folder),
            items=len(catalogue),
            pictures=catalogue.n_pictures,
            captions=len(catalogue.captions),
            retriever=layout.retriever.name,
            fingerprint=layout.retriever.fingerprint,
            stale=pending is not None,
            pending=None if pending is None else pending.name,
            pending_done=0 if pending is None else len(set(store.vector_keys(points_table(pending, "image")))),
            unsearchable=self._count_unsearchable(catalogue, points_table(layout.retriever, "image")),
            store_bytes=_bytes_in(layout.store),
            index_bytes=_bytes_in(layout.index),
            updated=iso_time(catalogue.newest_ns) if len(catalogue) else None,
            failures=self._last_failures(),
            point_bytes=width * kind.itemsize,
            is_codes=kind == np.uint8,
            memory_bytes=width * kind.itemsize * (catalogue.n_pictures + len(catalogue.captions)),
        )

    def check(self) -> CheckReport:
        """Compare the tables with the items."""
        self._state.check_layout()
        return Maintenance(self._state.store, self._state.layout, self._state.catalogue()).check()

    def repair(self) -> None:
        """Give missing points where possible, and drop what nothing uses."""
        with self._state.writing():
            RetrieverChanges(self._state).fill()
            layout = self._state.layout
            Maintenance(self._state.store, layout, self._state.catalogue()).clean()
            IndexCache(layout.index).keep_only([names.fingerprint for names in layout.stored])
            opening.delete_saved(layout)
            self._state.publish()

    def duplicates(self, threshold: float | None) -> list[DuplicateGroup]:
        """Return groups of items with the same picture."""
        catalogue = self._state.catalogue()
        groups = exact_groups(catalogue)
        if threshold is None or not catalogue.by_content:
            return groups
        if not -1 <= threshold <= 1:
            raise InvalidInputError(f"threshold is a cosine between -1 and 1, got {threshold}")
        table = features_table(self._state.layout.retriever, "image")
        rows = {
            key: row
            for keys, features in self._state.store.read_vectors(table, list(catalogue.by_content))
            for key, row in zip(keys, features, strict=True)
        }
        return groups + (near_groups(catalogue, list(rows), np.stack(list(rows.values())), threshold) if rows else [])

    def export(self, path: str | os.PathLike[str], format: str | None) -> None:
        """Write the items or the points to a file."""
        target = Path(path)
        kind = exporting.export_format(target, format)
        if kind in ("csv", "jsonl", "parquet"):
            exporting.write_items(target, kind, list(self._state.catalogue().items.values()))
            return
        points: dict[str, tuple[list[str], AnyArray]] = {
            side: ([gallery.keys[row] for row in np.flatnonzero(gallery.live)], gallery.vectors[gallery.live])
            for side, gallery in self._state.searching().galleries.items()
        }
        exporting.write_points(target, kind, points)

    def _count_unsearchable(self, catalogue: Catalogue, table: str) -> int:
        """Count the pictures without points; reading all keys takes long, so it is done once for each state."""
        about = (ref(catalogue), table, self._state.store.vectors_version(table))
        if about != self._counted:
            there = set(self._state.store.vector_keys(table))
            self._unsearchable, self._counted = len(set(catalogue.by_content) - there), about
        return self._unsearchable

    def _form_of_points(self) -> tuple[int, np.dtype[Any]] | None:
        tables = [points_table(self._state.layout.retriever, side) for side in SIDES]
        return next((form for name in tables if (form := self._state.store.vector_form(name)) is not None), None)

    def _last_failures(self) -> dict[str, str]:
        try:
            document = json.loads(self._state.layout.last_run.read_text(encoding="utf-8"))
            return dict(document["skipped"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
