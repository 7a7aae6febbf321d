"""One retriever of a collection with the points of its segments, in files that processes share, and their indexes."""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.atomic_files import seal_folder
from diptych.collection.browse.live_items import LiveItems, text_hash
from diptych.collection.browse.segment import FileSegment, MemorySegment, Segment, mapped_array
from diptych.collection.search.approximate_index import ApproximateIndex, Scoring
from diptych.collection.search.encoded_query import QueryEmbeddingCache
from diptych.collection.search.gallery import Gallery, PointBlock
from diptych.collection.search.ranking import unit_outputs
from diptych.collection.storage.clear_errors import check_room
from diptych.collection.storage.layout import RetrieverNames
from diptych.collection.storage.retriever_protocol import (
    SIDES,
    HashCodeRetrieverProtocol,
    PointKind,
    RetrieverProtocol,
    Side,
)
from diptych.collection.storage.store import Store, features_table, points_table
from diptych.encoders.image.picture_parts import REGIONS
from diptych.errors import DiptychError
from diptych.space import Direction

_ROWS_AT_ONCE = 1 << 14
_KEYS_AT_ONCE = 1000
_ARRAYS = ("owners", "captions", "vectors")
_OUTPUTS = "outputs"
# Changes of which more wait for files have no outputs in memory: the store would be read whole for them.
_MOST_RECENT = 4000
_log = logging.getLogger("diptych.collection")

# A region belongs to its picture, and thirteen chances find something like anything: so much of its score is that of
# the whole picture, and so much of the sum counts. Chosen by what bench/picture_regions.py measures.
WHOLE_SHARE, KEPT_SCORE = 0.3, 0.9


def beside_whole(regions: AnyArray, wholes: AnyArray) -> AnyArray:
    """Return the kept points of pictures' regions, a row for each picture, mixed with those of the whole pictures."""
    repeated = np.tile(wholes, regions.shape[1] // wholes.shape[1])
    return np.asarray(KEPT_SCORE * ((1 - WHOLE_SHARE) * regions + WHOLE_SHARE * repeated), dtype=np.float32)


class PointFiles:
    """Gives the points of one kind and retriever for any segment."""

    def __init__(
        self, store: Store, names: RetrieverNames, kind: PointKind, source: Callable[[], RetrieverProtocol]
    ) -> None:
        self._store = store
        self._source = source
        self._side: Side = "text" if kind == "text" else "image"
        self._features_table = features_table(names, self._side)
        self._table = points_table(names, kind)
        self._whole_table = points_table(names, "image")
        self._name = f"{kind}-{names.fingerprint}"
        self._kind = kind
        self.scoring = Scoring(source().space, _QUERY_SIDE[kind])
        self._per_key = len(REGIONS) if kind == "region" else 1
        # Kept points and outputs of the latest changes by content: most stay when one more comes.
        self._recent: dict[str, AnyArray] = {}
        self._recent_outputs: dict[str, AnyArray] = {}

    def block(self, segment: Segment) -> PointBlock:
        """Return the points of a segment."""
        if isinstance(segment, MemorySegment):
            return self._in_memory(segment)
        assert isinstance(segment, FileSegment)
        folder = segment.folder / self._name
        kept = _read(folder, self._kind)
        if kept is not None:
            return kept
        draft = segment.folder / f".{self._name}-{uuid.uuid4().hex}"
        try:
            self._write(segment, draft)
            seal_folder(draft)
            draft.rename(folder)
        except OSError:
            # The folder cannot be written, or another process was faster.
            shutil.rmtree(draft, ignore_errors=True)
            return _read(folder, self._kind) or self._from_store(segment)
        return _read(folder, self._kind) or self._from_store(segment)

    def _in_memory(self, segment: MemorySegment) -> PointBlock:
        contents, owners, captions = _contents(segment, self._kind)
        missing = [content for content in dict.fromkeys(contents) if content not in self._recent]
        known = self._recent | self._kept_by_key(missing)
        self._recent = {content: known[content] for content in contents if content in known}
        block = self._made(contents, owners, captions, self._recent)
        if not self.scoring.is_hash_codes or len(block) > _MOST_RECENT:
            return block

        @cache
        def outputs() -> AnyArray:
            return self._outputs_in_memory(segment, block)

        return replace(block, outputs=lambda rows: outputs()[rows])

    def _outputs_in_memory(self, segment: MemorySegment, block: PointBlock) -> AnyArray:
        contents = block.contents(segment, np.arange(len(block)))
        missing = [content for content in dict.fromkeys(contents) if content not in self._recent_outputs]
        made = np.empty((len(missing), 8 * block.vectors.shape[1]), dtype=np.float32)
        self._fill_outputs(made, missing)
        known = self._recent_outputs | dict(zip(missing, made, strict=True))
        self._recent_outputs = {content: known[content] for content in contents}
        return np.stack([known[content] for content in contents])

    def _from_store(self, segment: Segment) -> PointBlock:
        contents, owners, captions = _contents(segment, self._kind)
        return self._made(contents, owners, captions, self._kept_by_key(contents))

    def _made(
        self, contents: list[str], owners: IntArray, captions: IntArray, kept: Mapping[str, AnyArray]
    ) -> PointBlock:
        rows = [row for row, content in enumerate(contents) if content in kept]
        owners, numbers = self._of_points(owners[rows], captions[rows])
        if not rows:
            return PointBlock(owners, numbers, np.zeros((0, 0), dtype=np.float32))
        vectors = np.stack([kept[contents[row]] for row in rows])
        return PointBlock(owners, numbers, vectors.reshape(len(owners), -1))

    def _kept_by_key(self, keys: Sequence[str]) -> dict[str, AnyArray]:
        return {
            key: row
            for found, vectors in self._store.read_vectors(self._table, keys)
            for key, row in zip(found, self._kept(found, vectors), strict=True)
        }

    def _kept(self, keys: Sequence[str], vectors: AnyArray) -> AnyArray:
        """Return the points of contents as they are kept, a row for each content."""
        kept = self.scoring.stored(vectors.reshape(len(keys) * self._per_key, -1)).reshape(len(keys), -1)
        # A few at a time: for many, the store would read all of its pictures each time.
        for start in range(0, len(keys), _KEYS_AT_ONCE) if self._kind == "region" else ():
            whole = self._store.vectors_by_key(self._whole_table, keys[start : start + _KEYS_AT_ONCE])
            there = [row for row, key in enumerate(keys[start : start + _KEYS_AT_ONCE], start) if key in whole]
            if there:
                points = self.scoring.stored(np.stack([whole[keys[row]] for row in there]))
                kept[there] = beside_whole(kept[there], points)
        return kept

    def _of_points(self, owners: IntArray, captions: IntArray) -> tuple[IntArray, IntArray | None]:
        """Return the places of items, of captions or of regions in them, for each point of some contents."""
        if self._kind == "region":
            numbers = np.tile(np.arange(self._per_key, dtype=np.int32), len(owners))
            return np.repeat(owners, self._per_key), numbers
        return owners, captions if self._kind == "text" else None

    def _write(self, segment: Segment, folder: Path) -> None:
        """Write the points in the order of the segment, whatever the order in which the store gives them."""
        contents, owners, captions = _contents(segment, self._kind)
        form = self._store.vector_form(self._table)
        folder.mkdir()
        width, kind = (0, np.dtype(np.float32)) if form is None else form
        kept_width = self.scoring.stored(np.zeros((1, width // self._per_key), dtype=kind)).shape[1] if width else 0
        shape = len(contents) * self._per_key, kept_width
        draft = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=kind, shape=shape)
        by_content = draft.reshape(len(contents), -1) if draft.size else draft
        filled = self._fill(by_content, contents, self._table, self._kept)
        draft.flush()
        del draft, by_content
        if not filled.all():
            _drop_rows(folder / "vectors.npy", np.flatnonzero(np.repeat(filled, self._per_key)))
        of_points, numbers = self._of_points(owners[filled], captions[filled])
        np.save(folder / "owners.npy", of_points)
        np.save(folder / "captions.npy", captions[filled] if numbers is None else numbers)

    def _fill(
        self, rows: AnyArray, contents: Sequence[str], table: str, made: Callable[[list[str], AnyArray], AnyArray]
    ) -> BoolArray:
        """Fill the rows of contents with what is made of a table's, and say which there are; equal ones are equal."""
        rows_of: dict[str, list[int]] = {}
        for row, content in enumerate(contents):
            rows_of.setdefault(content, []).append(row)
        filled = np.zeros(len(contents), dtype=bool)
        for keys, vectors in self._store.read_vectors(table, list(rows_of)):
            kept = made(keys, vectors)
            pairs = [(row, place) for place, key in enumerate(keys) for row in rows_of.get(key, ())]
            if pairs:
                chosen, places = (list(each) for each in zip(*pairs, strict=True))
                rows[chosen] = kept[places]
                filled[chosen] = True
        return filled

    def _fill_outputs(self, rows: AnyArray, contents: Sequence[str]) -> None:
        """Fill rows with the outputs of contents, of unit length, NaN where there are no features."""
        source = cast(HashCodeRetrieverProtocol, self._source())

        def made(_: list[str], features: AnyArray) -> AnyArray:
            return unit_outputs(source, self._side, features, rows.shape[1])

        rows[~self._fill(rows, contents, self._features_table, made)] = np.nan

    def with_outputs(self, segment: FileSegment, block: PointBlock) -> PointBlock:
        """Return the block of a segment's codes with the outputs behind them, which are kept beside the codes.

        The caller is the only one who makes them. Those that cannot be read are made anew; where they cannot be kept,
        none is known, and the store is asked.
        """
        folder = segment.folder / self._name
        draft = folder / f".{uuid.uuid4().hex}"
        try:
            # Whoever forgets the points moves their folder away, and the draft with it: it never joins other points.
            draft.mkdir()
            kept = _read(folder, self._kind)
            if kept is not None and kept.outputs is None:
                self._write_outputs(segment, kept, draft)
                seal_folder(draft)
                shutil.rmtree(folder / _OUTPUTS, ignore_errors=True)
                draft.rename(folder / _OUTPUTS)
                kept = _read(folder, self._kind)
            if kept is not None and kept.outputs is not None:
                return kept
        except (OSError, DiptychError) as problem:
            _log.info("the outputs of %s are not kept: %s", folder, problem)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return replace(block, outputs=lambda rows: np.full((len(rows), 1), np.nan))

    def _write_outputs(self, segment: Segment, block: PointBlock, folder: Path) -> None:
        shape = len(block), 8 * block.vectors.shape[1]
        check_room(folder, 4 * shape[0] * shape[1])
        draft = np.lib.format.open_memmap(folder / f"{_OUTPUTS}.npy", mode="w+", dtype=np.float32, shape=shape)
        self._fill_outputs(draft, block.contents(segment, np.arange(len(block))))
        draft.flush()

    def build_index(self, segment: Segment, block: PointBlock, queries: FloatArray | None) -> PointBlock:
        """Return the block with an index of its rows, which is kept beside them where there are files."""
        metric = self.scoring.index_metric
        if metric is None:
            return block
        index = ApproximateIndex.build(block.vectors, metric, queries)
        if isinstance(segment, FileSegment):
            with suppress(OSError, RuntimeError):
                index.write(segment.folder / self._name)
                index = ApproximateIndex.read(segment.folder / self._name) or index
        return replace(block, index=index)


def _contents(segment: Segment, kind: PointKind) -> tuple[list[str], IntArray, IntArray]:
    """Return what could have points: contents, the places of their items, and of captions in these."""
    if kind != "text":
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


def _read(folder: Path, kind: PointKind) -> PointBlock | None:
    try:
        owners, captions, vectors = (mapped_array(folder / f"{name}.npy") for name in _ARRAYS)
    except (OSError, ValueError):
        return None
    index, outputs = ApproximateIndex.read(folder), _read_outputs(folder, vectors)
    return PointBlock(owners, None if kind == "image" else captions, vectors, index, outputs)


def _read_outputs(folder: Path, codes: AnyArray) -> Callable[[IntArray], AnyArray] | None:
    try:
        outputs = mapped_array(folder / _OUTPUTS / f"{_OUTPUTS}.npy")
    except (OSError, ValueError):
        return None
    return outputs.__getitem__ if outputs.shape == (len(codes), 8 * codes.shape[1]) else None


_QUERY_SIDE: dict[PointKind, Direction] = {"image": "text_query", "text": "image_query", "region": "text_query"}
_OTHER: dict[PointKind, Side] = {"image": "text", "text": "image", "region": "text"}
# Below this many points comparing all of them is fast enough, and exact.
APPROXIMATE_FROM = 100_000
_FEWEST_QUERIES, _QUERIES = 100, 1000


class RetrieverState:
    """One retriever with the points of the segments, each loaded when it is first asked for."""

    def __init__(
        self, names: RetrieverNames, store: Store, load: Callable[[RetrieverNames], RetrieverProtocol]
    ) -> None:
        self.names = names
        self._store = store
        self._load = load
        self._source: RetrieverProtocol | None = None
        self._query_embeddings: QueryEmbeddingCache | None = None
        self._files: dict[PointKind, PointFiles] = {}
        self._blocks: dict[tuple[PointKind, Segment], PointBlock] = {}
        self._items: LiveItems | None = None
        self._galleries: dict[PointKind, Gallery] = {}

    @property
    def source(self) -> RetrieverProtocol:
        """The retriever itself."""
        if self._source is None:
            self._source = self._load(self.names)
        return self._source

    @property
    def query_embeddings(self) -> QueryEmbeddingCache:
        """The points of the words of queries."""
        if self._query_embeddings is None:
            self._query_embeddings = QueryEmbeddingCache(self.source)
        return self._query_embeddings

    def use(self, names: RetrieverNames, source: RetrieverProtocol | None) -> None:
        """Take over another saved form of the retriever, which makes the same points."""
        if source is not None or names.saved != self.names.saved:
            self._source = source
            self._query_embeddings = None
        self.names = names

    def forget_points(self) -> None:
        """Load the points again when they are asked for."""
        self._blocks, self._items = {}, None

    def galleries(self, items: LiveItems) -> dict[PointKind, Gallery]:
        """Return the points of the items; those of regions where there are any."""
        if self._items is not items:
            has_regions = self._store.vector_form(points_table(self.names, "region")) is not None
            kinds: tuple[PointKind, ...] = (*SIDES, "region") if has_regions else SIDES
            wanted = {(kind, part.segment) for kind in kinds for part in items.parts}
            self._blocks = {key: block for key, block in self._blocks.items() if key in wanted}
            self._files = {kind: files for kind, files in self._files.items() if kind in kinds}
            self._galleries = {kind: self._gallery(kind, items) for kind in kinds}
            self._items = items
        return dict(self._galleries)

    def _gallery(self, kind: PointKind, items: LiveItems) -> Gallery:
        if kind not in self._files:
            self._files[kind] = PointFiles(self._store, self.names, kind, lambda: self.source)
        for part in items.parts:
            if (kind, part.segment) not in self._blocks:
                self._blocks[kind, part.segment] = self._files[kind].block(part.segment)
        scoring = self._files[kind].scoring
        return Gallery(scoring, items.parts, tuple(self._blocks[kind, part.segment] for part in items.parts))

    def prepare(self, segment: FileSegment) -> None:
        """Make the files of a segment's points before it is used, and the indexes of large ones."""
        files = dict(self._files)
        blocks = {kind: each.block(segment) for kind, each in files.items()}
        for kind, block in blocks.items():
            if len(block) >= APPROXIMATE_FROM:
                files[kind].build_index(segment, block, _sample(blocks[_OTHER[kind]].vectors))

    def build_index(self, kind: PointKind, segment: Segment, galleries: Mapping[PointKind, Gallery]) -> PointBlock:
        """Return the points of a segment with an index, which searches use after `take_block`."""
        gallery, other = galleries[kind], galleries[_OTHER[kind]]
        numbers = [number for number, part in enumerate(gallery.parts) if part.segment is segment]
        largest = max((block.vectors for block in other.blocks), key=len)
        return self._files[kind].build_index(segment, gallery.blocks[numbers[0]], _sample(largest))

    def with_outputs(self, side: Side, segment: FileSegment, block: PointBlock) -> PointBlock:
        """Return the codes of a segment with the outputs behind them, which searches use after `take_block`."""
        return self._files[side].with_outputs(segment, block)

    def take_block(self, kind: PointKind, segment: Segment, block: PointBlock) -> None:
        """Let searches use an index or outputs, unless their segment has gone meanwhile."""
        if (kind, segment) in self._blocks:
            self._blocks[kind, segment] = block
            self._items = None

    def features(self, side: Side, keys: Sequence[str]) -> Mapping[str, AnyArray]:
        """Return the stored features of some contents, as far as there are any."""
        return self._store.vectors_by_key(features_table(self.names, side), keys)


def _sample(points: AnyArray) -> AnyArray | None:
    """Return some of the points of the other side: what will be asked may lie elsewhere than what is found."""
    if len(points) < _FEWEST_QUERIES:
        return None
    chosen = np.random.default_rng(0).permutation(len(points))[:_QUERIES]
    return np.ascontiguousarray(points[np.sort(chosen)])
