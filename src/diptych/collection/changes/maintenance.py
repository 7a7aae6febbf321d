"""Maintenance: the status of a collection, its repair, its duplicates, its export, and its format."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray, row_blocks, unit_rows
from diptych.collection.browse import export
from diptych.collection.browse.live_items import LiveItems
from diptych.collection.search.approximate_index import stored_recall
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage.item import Item, iso_time
from diptych.collection.storage.layout import (
    FORMAT_VERSION,
    FORMER_VERSIONS,
    Layout,
    RetrieverNames,
    search_package,
    write_lock,
)
from diptych.collection.storage.retriever_protocol import SIDES, Side
from diptych.collection.storage.store import Store, features_table, points_table, tables_of
from diptych.errors import InvalidInputError, counted


@dataclass(frozen=True)
class Status:
    """Counts, sizes and the retriever of a collection.

    ``stale`` is true while a new retriever is pending: searches still use the old one, and ``reencode`` finishes the
    change. ``unsearchable`` counts pictures without points, which could not be read. ``updated`` is when an item was
    last added or changed, ISO 8601 in UTC. ``failures`` are the paths that the last addition skipped, with reasons.
    ``point_bytes`` is what one point takes, 0 before there are any; ``is_codes`` says that points are binary codes;
    ``memory_bytes`` is what all points take when they are searched. ``recall`` is the share of the ten nearest that the
    search index finds, measured when it was built; None where everything is compared. ``storage_away_seconds`` is how
    long the object storage of the collection could not be reached; None while it can, and for one in a folder.
    """

    folder: str
    root: str
    items: int
    pictures: int
    captions: int
    retriever: str
    fingerprint: str
    stale: bool
    pending: str | None
    pending_done: int
    unsearchable: int
    store_bytes: int
    index_bytes: int
    updated: str | None = None
    failures: Mapping[str, str] = field(default_factory=dict)
    point_bytes: int = 0
    is_codes: bool = False
    memory_bytes: int = 0
    recall: float | None = None
    storage_away_seconds: float | None = None


@dataclass(frozen=True)
class CheckReport:
    """Whether a collection is whole, and what lies in it unused.

    ``problems`` are items that lack what they need; ``unused`` counts rows of each table that no item uses;
    ``unused_tables`` are those of retrievers no longer in force.
    """

    problems: tuple[str, ...] = ()
    unused: dict[str, int] = field(default_factory=dict)
    unused_tables: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every item has what it needs."""
        return not self.problems


@dataclass(frozen=True)
class DuplicateGroup:
    """Items whose pictures are the same: byte for byte (``exact``), or nearly, by the cosine of their features.

    ``similarity`` is the smallest cosine of a link that holds the group together; 1 for exact copies.
    """

    exact: bool
    ids: tuple[str, ...]
    paths: tuple[str, ...]
    similarity: float


_BLOCK = 2048


def _group(items: Sequence[Item], similarity: float | None = None) -> DuplicateGroup:
    ids, paths = tuple(item.id for item in items), tuple(str(item.path) for item in items)
    return DuplicateGroup(similarity is None, ids, paths, 1.0 if similarity is None else similarity)


def near_groups(
    items: LiveItems, contents: Sequence[str], features: FloatArray, threshold: float
) -> list[DuplicateGroup]:
    """Return the groups of different contents linked by a cosine of at least ``threshold``, in bounded memory."""
    group_of: IntArray = np.arange(len(contents))
    weakest = np.full(len(contents), np.inf)
    for left, right, cosines in _links(unit_rows(features), threshold):
        np.minimum.at(weakest, left, cosines)
        group_of = _joined(group_of, group_of[left], group_of[right])
    groups = []
    by_group = np.argsort(group_of, kind="stable")
    for rows in np.split(by_group, np.flatnonzero(np.diff(group_of[by_group])) + 1):
        if len(rows) < 2:
            continue
        alike = [item for row in rows.tolist() for item in items.find("content", contents[row])]
        groups.append(_group(alike, float(weakest[rows].min())))
    return groups


def _joined(group_of: IntArray, left: IntArray, right: IntArray) -> IntArray:
    """Return the groups after those on the left are one with those on the right, in the order of their first rows."""
    apart = left != right
    if not apart.any():
        return group_of
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    shape = (len(group_of), len(group_of))
    links = coo_matrix((np.ones(np.count_nonzero(apart)), (left[apart], right[apart])), shape)
    return np.asarray(connected_components(links, directed=False)[1][group_of])


def _links(features: FloatArray, threshold: float) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    for rows in row_blocks(len(features), _BLOCK):
        for columns in row_blocks(rows.stop, _BLOCK):
            cosines = features[rows] @ features[columns].T
            left, right = np.nonzero(cosines >= threshold)
            pairs = left + rows.start > right + columns.start
            if pairs.any():
                left, right = left[pairs], right[pairs]
                yield left + rows.start, right + columns.start, cosines[left, right]


class Maintenance:
    """Counts, checks, cleans and exports what a collection holds."""

    def __init__(self, state: LiveState) -> None:
        self._state = state

    def status(self) -> Status:
        """Return counts, sizes, and whether a change of retriever is unfinished."""
        self._state.check_layout()
        items, layout, store = self._state.items(), self._state.layout, self._state.store
        pending = layout.pending
        forms = [store.vector_form(points_table(layout.retriever, side)) for side in SIDES]
        width, kind = next(filter(None, forms), (0, np.dtype(np.float32)))
        return Status(
            folder=self._state.place.name,
            root=str(self._state.root.folder),
            items=len(items),
            pictures=items.n_pictures,
            captions=items.n_captions,
            retriever=layout.retriever.name,
            fingerprint=layout.retriever.fingerprint,
            stale=pending is not None,
            pending=None if pending is None else pending.name,
            pending_done=0 if pending is None else len(store.keys(points_table(pending, "image")).unique()),
            unsearchable=self._state.lacking(layout.retriever, "image"),
            store_bytes=_bytes_in(layout.store),
            index_bytes=_bytes_in(layout.index),
            updated=iso_time(items.newest_ns) if len(items) else None,
            failures=self._last_failures(),
            point_bytes=width * kind.itemsize,
            is_codes=kind == np.uint8,
            memory_bytes=width * kind.itemsize * (items.n_pictures + items.n_captions),
            recall=self._least_recall(),
            storage_away_seconds=self._state.place.storage_away_seconds,
        )

    def _least_recall(self) -> float | None:
        folder, fingerprint = self._state.layout.index, self._state.layout.retriever.fingerprint
        found = [recall for path in folder.glob(f"*/*-{fingerprint}") if (recall := stored_recall(path)) is not None]
        return min(found, default=None)

    def check(self) -> CheckReport:
        """Compare the tables with the items."""
        self._state.check_layout()
        layout, used = self._state.layout, self._used_keys()
        problems = [
            self._lack_of_points(names, side, lacking)
            for side in SIDES
            for names in layout.stored
            if names.fingerprint not in layout.unfinished
            # The files that are searched may still have what the store has lost.
            if (lacking := len(_beyond(used[side], self._state.store.keys(points_table(names, side)))))
        ]
        problems += [
            f"the points of the retriever {names.name!r} are unfinished; add it again, or remove it"
            for names in layout.stored
            if names.fingerprint in layout.unfinished
        ]
        unused = {name: len(rows) for name, rows in self._unused_rows(used) if len(rows)}
        return CheckReport(tuple(problems), unused, tuple(self._unused_tables()))

    def clean(self) -> None:
        """Remove what no item and no retriever uses and join small files; the caller is the only writer."""
        store, layout = self._state.store, self._state.layout
        # A backup that chooses versions of the tables at this moment sees by it that it has to choose again.
        self._state.write_layout(layout, None)
        for name in self._unused_tables():
            store.drop(name)
        for name, rows in self._unused_rows(self._used_keys()):
            store.delete_rows(name, rows.to_pylist())
        store.compact(everything=True)
        self._state.tidy_index()
        self._state.delete_saved()

    def duplicates(self, threshold: float | None) -> list[DuplicateGroup]:
        """Return groups of items with the same picture."""
        items = self._state.items()
        held = items.column("content_hash").drop_null().value_counts()
        contents, counts = held.field("values"), held.field("counts").to_numpy()
        groups = [_group(items.find("content", content)) for content in contents.filter(counts > 1).to_pylist()]
        if threshold is None:
            return groups
        if not -1 <= threshold <= 1:
            raise InvalidInputError(f"threshold is a cosine between -1 and 1, got {threshold}")
        table = features_table(self._state.layout.retriever, "image")
        rows = self._state.store.vectors_by_key(table, contents.to_pylist())
        return groups + (near_groups(items, list(rows), np.stack(list(rows.values())), threshold) if rows else [])

    def export(self, path: str | os.PathLike[str], format: str | None) -> None:
        """Write the items or the points to a file."""
        target = Path(path)
        kind = export.export_format(target, format)
        if kind in ("csv", "jsonl", "parquet"):
            export.write_items(target, kind, self._state.items())
            return
        points: dict[str, tuple[list[str], AnyArray]] = {
            side: (gallery.keys(rows).tolist(), gallery.vectors(rows))
            for side, gallery in self._state.snapshot().galleries.items()
            for rows in [gallery.rows_in_order()]
        }
        export.write_points(target, kind, points)

    def _lack_of_points(self, names: RetrieverNames, side: Side, number: int) -> str:
        has, is_not, it = ("has", "is", "it") if number == 1 else ("have", "are", "them")
        of = f"of the retriever {names.name!r} " if self._state.layout.further else ""
        what = counted(number, "picture" if side == "image" else "caption")
        return f"{what} {has} no points {of}and {is_not} not found; add or refresh {it}"

    def _used_keys(self) -> dict[str, Any]:
        items = self._state.items()
        return {"caption": items.column("caption_ids"), **{side: items.hashes(side) for side in SIDES}}

    def _unused_rows(self, used: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the tables with the keys in them that no item uses."""
        tables = {"captions": "caption", "thumbnails": "image", **tables_of(self._state.layout.in_force)}
        for name, kind in tables.items():
            yield name, _beyond(self._state.store.keys(name), used[kind])

    def _unused_tables(self) -> list[str]:
        in_force = tables_of(self._state.layout.in_force)
        return [name for name in self._state.store.vector_tables() if name not in in_force]

    def _last_failures(self) -> dict[str, str]:
        try:
            return dict(json.loads(self._state.layout.last_run.read_text(encoding="utf-8"))["skipped"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def _beyond(keys: Any, others: Any) -> Any:
    """Return the keys that are not among others."""
    pc = search_package("pyarrow.compute")
    return keys.filter(pc.invert(pc.is_in(keys, others)))


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class MigrationReport:
    """The format of a collection before and after."""

    folder: Path
    before: int
    after: int

    @property
    def has_changed(self) -> bool:
        """Whether there was anything to do."""
        return self.before != self.after


def migrate_collection(folder: Path, write_wait: float = 0.0) -> MigrationReport:
    """Bring a collection to the present format.

    Tables and indexes are added beside what is there, and the last step replaces ``collection.json``: until then the
    collection is of its former format, whole, and a run that was interrupted is simply repeated.
    """
    layout = Layout.read(folder, former=True)
    with write_lock(folder / "write.lock", write_wait):
        before = _format_version(folder)
        if before in FORMER_VERSIONS:
            Store(layout.store).prepare()
            # Another writer may have changed it before the lock was held.
            Layout.read(folder, former=True).write()
            # Its indexes of points are of no use any more.
            shutil.rmtree(layout.index, ignore_errors=True)
    return MigrationReport(folder, before, FORMAT_VERSION)


def _format_version(folder: Path) -> int:
    return int(json.loads((folder / "collection.json").read_text(encoding="utf-8"))["format_version"])
