"""One retriever of a collection with the points of its segments, and their indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.browse.live_items import LiveItems
from diptych.collection.browse.segment import FileSegment, Segment
from diptych.collection.search.encoded_query import QueryEmbeddingCache
from diptych.collection.search.gallery import Gallery, PointBlock, Scoring
from diptych.collection.search.point_files import PointFiles
from diptych.collection.storage.layout import RetrieverNames
from diptych.collection.storage.retriever_protocol import SIDES, PointKind, RetrieverProtocol, Side
from diptych.collection.storage.store import Store, features_table, points_table
from diptych.space import Direction

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
        scoring = Scoring(self.source.space, _QUERY_SIDE[kind])
        if kind not in self._files:
            self._files[kind] = PointFiles(self._store, self.names, kind, scoring)
        for part in items.parts:
            if (kind, part.segment) not in self._blocks:
                self._blocks[kind, part.segment] = self._files[kind].block(part.segment)
        return Gallery(scoring, items.parts, tuple(self._blocks[kind, part.segment] for part in items.parts))

    def prepare(self, segment: FileSegment) -> None:
        """Make the files of a segment's points before it is used, and the indexes of large ones."""
        files = dict(self._files)
        blocks = {kind: each.block(segment) for kind, each in files.items()}
        for kind, block in blocks.items():
            if len(block) >= APPROXIMATE_FROM:
                files[kind].build_index(segment, block, _sample(blocks[_OTHER[kind]].vectors))

    def build_index(self, kind: PointKind, segment: Segment, galleries: Mapping[PointKind, Gallery]) -> PointBlock:
        """Return the points of a segment with an index, which searches use after `take_index`."""
        gallery, other = galleries[kind], galleries[_OTHER[kind]]
        numbers = [number for number, part in enumerate(gallery.parts) if part.segment is segment]
        largest = max((block.vectors for block in other.blocks), key=len)
        return self._files[kind].build_index(segment, gallery.blocks[numbers[0]], _sample(largest))

    def take_index(self, kind: PointKind, segment: Segment, block: PointBlock) -> None:
        """Let searches use an index, unless its segment has gone meanwhile."""
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
