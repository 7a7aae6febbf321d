"""The points of a segment: made from the store, kept in files that processes share, with an index where it pays."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.atomic_files import make_durable
from diptych.collection.browse.live_items import LiveItems, text_hash
from diptych.collection.browse.segment import FileSegment, MemorySegment, Segment, mapped_array
from diptych.collection.search.approximate_index import ApproximateIndex
from diptych.collection.search.gallery import PointBlock, Scoring
from diptych.collection.storage.layout import RetrieverNames
from diptych.collection.storage.retriever_protocol import Side
from diptych.collection.storage.store import Store, points_table

_ROWS_AT_ONCE = 1 << 14
_ARRAYS = ("owners", "captions", "vectors")


class PointFiles:
    """Gives the points of one retriever's side for any segment."""

    def __init__(self, store: Store, names: RetrieverNames, side: Side, scoring: Scoring) -> None:
        self._store = store
        self._table = points_table(names, side)
        self._name = f"{side}-{names.fingerprint}"
        self._side = side
        self._scoring = scoring
        # Points of the latest changes by content: most stay when one more comes.
        self._recent: dict[str, AnyArray] = {}

    def block(self, segment: Segment) -> PointBlock:
        """Return the points of a segment."""
        if isinstance(segment, MemorySegment):
            return self._in_memory(segment)
        assert isinstance(segment, FileSegment)
        folder = segment.folder / self._name
        kept = _read(folder, self._side)
        if kept is not None:
            return kept
        draft = segment.folder / f".{self._name}-{uuid.uuid4().hex}"
        try:
            self._write(segment, draft)
            make_durable(draft)
            draft.rename(folder)
        except OSError:
            # The folder cannot be written, or another process was faster.
            shutil.rmtree(draft, ignore_errors=True)
            return _read(folder, self._side) or self._from_store(segment)
        return _read(folder, self._side) or self._from_store(segment)

    def _in_memory(self, segment: MemorySegment) -> PointBlock:
        contents, owners, captions = _contents(segment, self._side)
        missing = [content for content in dict.fromkeys(contents) if content not in self._recent]
        known = self._recent | self._store.vectors_by_key(self._table, missing)
        self._recent = {content: known[content] for content in contents if content in known}
        return self._made(contents, owners, captions, self._recent)

    def _from_store(self, segment: Segment) -> PointBlock:
        contents, owners, captions = _contents(segment, self._side)
        return self._made(contents, owners, captions, self._store.vectors_by_key(self._table, contents))

    def _made(
        self, contents: list[str], owners: IntArray, captions: IntArray, known: Mapping[str, AnyArray]
    ) -> PointBlock:
        rows = [row for row, content in enumerate(contents) if content in known]
        vectors = np.stack([known[contents[row]] for row in rows]) if rows else np.zeros((0, 0), dtype=np.float32)
        kept = self._scoring.stored(vectors) if rows else vectors
        return PointBlock(owners[rows], captions[rows] if self._side == "text" else None, kept)

    def _write(self, segment: Segment, folder: Path) -> None:
        """Write the points in the order of the segment, whatever the order in which the store gives them."""
        contents, owners, captions = _contents(segment, self._side)
        form = self._store.vector_form(self._table)
        folder.mkdir()
        width, kind = (0, np.dtype(np.float32)) if form is None else form
        shape = (len(contents), self._scoring.stored(np.zeros((1, width), dtype=kind)).shape[1] if width else 0)
        draft = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=kind, shape=shape)
        rows_of: dict[str, list[int]] = {}
        for row, content in enumerate(contents):
            rows_of.setdefault(content, []).append(row)
        filled = np.zeros(len(contents), dtype=bool)
        for keys, vectors in self._store.read_vectors(self._table, list(rows_of)):
            kept = self._scoring.stored(vectors)
            pairs = [(row, place) for place, key in enumerate(keys) for row in rows_of.get(key, ())]
            if pairs:
                rows, places = (list(each) for each in zip(*pairs, strict=True))
                draft[rows] = kept[places]
                filled[rows] = True
        draft.flush()
        del draft
        if not filled.all():
            _drop_rows(folder / "vectors.npy", np.flatnonzero(filled))
        np.save(folder / "owners.npy", owners[filled])
        np.save(folder / "captions.npy", captions[filled])

    def build_index(self, segment: Segment, block: PointBlock, queries: FloatArray | None) -> PointBlock:
        """Return the block with an index of its rows, which is kept beside them where there are files."""
        metric = self._scoring.index_metric
        if metric is None:
            return block
        index = ApproximateIndex.build(block.vectors, metric, queries)
        if isinstance(segment, FileSegment):
            with suppress(OSError, RuntimeError):
                index.write(segment.folder / self._name)
                index = ApproximateIndex.read(segment.folder / self._name) or index
        return replace(block, index=index)


def _contents(segment: Segment, side: Side) -> tuple[list[str], IntArray, IntArray]:
    """Return what could have points: contents, the places of their items, and of captions in these."""
    if side == "image":
        held = segment.column("content_hash").to_pylist()
        owners = [place for place, content in enumerate(held) if content is not None]
        places = np.array(owners, dtype=np.int32)
        return [content for content in held if content is not None], places, np.zeros_like(places)
    texts = segment.column("captions").to_pylist()
    counts = np.array([len(captions) for captions in texts], dtype=np.int64)
    numbers = [number for captions in texts for number in range(len(captions))]
    contents = [text_hash(text) for captions in texts for text in captions]
    return contents, np.repeat(np.arange(len(texts), dtype=np.int32), counts), np.array(numbers, dtype=np.int32)


def lacking_points(store: Store, names: RetrieverNames, side: Side, items: LiveItems) -> int:
    """Return how many pictures or captions have no point; the store is asked where there are no files of points."""
    lacking, others = 0, []
    for part in items.parts:
        owners = part.segment.picture_owners if side == "image" else part.segment.caption_owners
        try:
            folder = part.segment.folder if isinstance(part.segment, FileSegment) else Path()
            pointed = mapped_array(folder / f"{side}-{names.fingerprint}" / "owners.npy")
            lacking += part.n_live(owners) - part.n_live(pointed)
        except (OSError, ValueError):
            others.append(part)
    hashes = LiveItems(tuple(others)).hashes(side).to_pylist()
    there = set(store.present_keys(points_table(names, side), hashes))
    return lacking + sum(one not in there for one in hashes)


def _drop_rows(path: Path, kept: IntArray) -> None:
    vectors = np.load(path, mmap_mode="r")
    shorter = path.with_name("shorter.npy")
    copy = np.lib.format.open_memmap(shorter, mode="w+", dtype=vectors.dtype, shape=(len(kept), vectors.shape[1]))
    for start in range(0, len(kept), _ROWS_AT_ONCE):
        copy[start : start + _ROWS_AT_ONCE] = vectors[kept[start : start + _ROWS_AT_ONCE]]
    copy.flush()
    shorter.replace(path)


def _read(folder: Path, side: Side) -> PointBlock | None:
    try:
        owners, captions, vectors = (mapped_array(folder / f"{name}.npy") for name in _ARRAYS)
    except (OSError, ValueError):
        return None
    return PointBlock(owners, captions if side == "text" else None, vectors, ApproximateIndex.read(folder))
