"""Maintenance: the status of a collection, its repair, its duplicates, its export, and its format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import FloatArray, IntArray, row_blocks, unit_rows
from diptych.atomic_files import read_json
from diptych.collection.browse import export
from diptych.collection.browse.export import Points
from diptych.collection.browse.live_items import LiveItems, text_hashes
from diptych.collection.changes.damage import find_damage, sentences
from diptych.collection.search.approximate_index import Scoring, stored_recall
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage.item import Item, iso_time
from diptych.collection.storage.layout import (
    RetrieverNames,
    search_package,
)
from diptych.collection.storage.retriever_protocol import SIDES, Side
from diptych.collection.storage.status import Status
from diptych.collection.storage.store import features_table, points_table, tables_of
from diptych.encoders.image.picture_parts import REGIONS
from diptych.errors import CollectionError, InvalidInputError, NoRoomError, counted


@dataclass(frozen=True)
class CheckReport:
    """Whether a collection is whole, and what lies in it unused.

    ``problems`` are damaged files and items that lack what they need, a sentence each; ``damaged`` has the files by
    name, with what is wrong. ``unused`` counts rows of each table that no item uses; ``unused_tables`` are those of
    retrievers no longer in force.
    """

    problems: tuple[str, ...] = ()
    unused: dict[str, int] = field(default_factory=dict)
    unused_tables: tuple[str, ...] = ()
    damaged: dict[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every file is as it was written, and every item has what it needs."""
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
        with_regions = len(store.keys(points_table(layout.retriever, "region")))
        return Status(
            folder=str(self._state.folder),
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
            memory_bytes=width * kind.itemsize * (items.n_pictures + items.n_captions + len(REGIONS) * with_regions),
            recall=self._least_recall(),
            texts_read=len(store.picture_texts),
            with_regions=with_regions,
        )

    def _least_recall(self) -> float | None:
        folder, fingerprint = self._state.layout.index, self._state.layout.retriever.fingerprint
        found = [recall for path in folder.glob(f"*/*-{fingerprint}") if (recall := stored_recall(path)) is not None]
        return min(found, default=None)

    def check(self, *, all_bytes: bool = True) -> CheckReport:
        """Compare the files with their checksums, and the tables with the items."""
        damaged = find_damage(self._state, all_bytes=all_bytes)
        named = tuple(sentences(damaged))
        try:
            compared = self._state.retry_if_changed(self._look)
        except CollectionError as problem:
            return CheckReport(named or (str(problem),), damaged=damaged)
        return replace(compared, problems=named + compared.problems, damaged=damaged)

    def _look(self) -> CheckReport:
        layout, used = self._state.layout, self._used_keys()
        problems = [
            self._lack_of_points(names, side, lacking)
            for side in SIDES
            for names in layout.followed
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
        # To drop rows takes room before it makes any.
        with suppress(NoRoomError):
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

    def export(self, path: str | os.PathLike[str], format: str | None, points: bool = False) -> None:
        """Write the items or the points to a file."""
        target = Path(path)
        kind = export.export_format(target, format)
        if kind in ("csv", "jsonl", "parquet"):
            items = self._state.items()
            texts = self._state.store.picture_texts.get(items.hashes("image").unique().to_pylist())
            told = {content: found.text for content, found in texts.items()}
            export.write_items(target, kind, items, told, self._points()["image"] if points else None)
        elif kind == "faiss":
            scoring = Scoring(self._state.retriever(None).space, "text_query")
            metric = "hamming" if scoring.is_hash_codes else scoring.index_metric
            export.write_faiss(target, self._points(), metric)
        else:
            export.write_points(target, kind, self._points())

    def _points(self) -> dict[str, Points]:
        return {
            side: (gallery.keys(rows).tolist(), gallery.vectors(rows))
            for galleries in [self._state.snapshot().galleries]
            for side in SIDES
            for gallery in [galleries[side]]
            for rows in [gallery.rows_in_order()]
        }

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
        fixed = {"captions": "caption", "thumbnails": "image", "picture_texts": "image"}
        pa, past = search_package("pyarrow"), list(self._state.store.past_items.contents())
        kept = {
            "caption": [],
            "image": [rows["content_hash"].drop_null() for rows in past],
            "text": [pa.array(text_hashes(rows["captions"].flatten()), "string") for rows in past],
        }
        for name, kind in {**fixed, **tables_of(self._state.layout.in_force)}.items():
            unused = _beyond(self._state.store.keys(name), used[kind])
            for keys in kept[kind]:
                unused = _beyond(unused, keys)
            yield name, unused

    def _unused_tables(self) -> list[str]:
        in_force = tables_of(self._state.layout.in_force)
        return [name for name in self._state.store.vector_tables() if name not in in_force]

    def _last_failures(self) -> dict[str, str]:
        try:
            return dict(read_json(self._state.layout.last_run)["skipped"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def _beyond(keys: Any, others: Any) -> Any:
    """Return the keys that are not among others."""
    pc = search_package("pyarrow.compute")
    return keys.filter(pc.invert(pc.is_in(keys, others)))


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
