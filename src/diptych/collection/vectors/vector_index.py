"""The vector index of a collection in a folder: a mapped file of faiss, and the points that are newer in memory."""

from __future__ import annotations

import fcntl
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, BoolArray, IntArray
from diptych.collection.retriever_protocol import PointKind
from diptych.collection.store.dialect import Connection, has_table
from diptych.collection.store.points import (
    ROWS_AT_ONCE,
    last_point,
    point_blocks,
    point_count,
    point_form,
    point_table,
    points_with,
)
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store
from diptych.collection.vectors.neighbours import Effort, IndexStatus, PointBlock, VectorIndex
from diptych.collection.vectors.vector_files import (
    MAX_FLAT,
    ROWS_PER_LIST,
    TUNING_QUERIES,
    VectorPart,
    flat_part,
    inverted_part,
    list_count,
    read_part,
    vector_folders,
    write_part,
)
from diptych.errors import DiptychError

MIN_REBUILD_ROWS = 10_000
REBUILD_SHARE = 0.1
DEAD_SHARE = 0.2
MERGE_BELOW = 4096
"""New points join the last part in memory while that is shorter."""

LOOK_EVERY_S = 2.0
COUNT_EVERY_S = 60.0
BUILD_LOCK = "build.lock"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Loaded:
    """What a process searches: the points up to ``covered`` in a file, those up to ``last`` in memory."""

    file: VectorPart | None
    covered: int
    tail: tuple[VectorPart, ...]
    newest: tuple[PointBlock, ...]
    last: int

    @property
    def parts(self) -> tuple[VectorPart, ...]:
        return self.tail if self.file is None else (self.file, *self.tail)

    @property
    def n_tail(self) -> int:
        return sum(map(len, self.tail))


def vector_index(store: Store, model: int, side: PointKind, scoring: Scoring) -> VectorIndex:
    """Return the index over the points of a model's side."""
    if store.engine == "sqlite":
        return FileVectorIndex(store, model, side, scoring)
    # Imported lazily: SQLite does not need it.
    from diptych.collection.vectors.pgvector import PostgresVectorIndex

    return PostgresVectorIndex(store, model, side, scoring)


class FileVectorIndex(VectorIndex):
    """Vectors beside SQLite. Threads share one object; processes share the mapped file."""

    def __init__(self, store: Store, model: int, side: PointKind, scoring: Scoring) -> None:
        super().__init__(store, model, side, scoring)
        self._loaded: _Loaded | None = None
        self._refresh = threading.Lock()
        self._looked = 0.0
        self._counted = 0.0
        self._builder: threading.Thread | None = None

    def build(self) -> None:
        """Write the vector file anew over all points; does nothing while another process does so."""
        if self.scoring.metric is None:
            return
        with build_lock(self.store) as is_free:
            if is_free:
                self._write()
        self._loaded = None

    def catch_up(self) -> None:
        """Write the vector file where it lacks many points."""
        if self.scoring.metric is None:
            return
        covered = next((covered for covered, _ in vector_folders(self.store.derived, self.model, self.side)), 0)
        with self.store.reading() as db:
            if not has_table(db, point_table(self.model, self.side)):
                # Another process has removed the search model.
                return
            n_newer = last_point(db, self.model, self.side) - covered
        if n_newer > MIN_REBUILD_ROWS:
            self._build_quietly()

    def status(self, db: Connection) -> IndexStatus:
        """Return what the vector file covers."""
        points = point_count(db, self.model, self.side)
        found = None if self.scoring.metric is None else self._current(db)
        if found is None or found.file is None:
            return IndexStatus(points, 0, 0, "all compared", 1.0)
        kind = "inverted lists" if found.file.probes else "flat file"
        return IndexStatus(points, len(found.file), found.covered, kind, found.file.recall)

    def compares_all(self, db: Connection, n_allowed: int) -> bool:
        """Return True if a search compares all allowed points: there are no inverted lists."""
        if self.scoring.metric is None:
            return True
        file = self._current(db).file
        return file is None or not file.probes

    def _candidates(
        self, db: Connection, queries: AnyArray, wanted: int, allowed: BoolArray | None, effort: Effort
    ) -> tuple[IntArray, bool]:
        loaded = self._current(db)
        compares_all = loaded.file is None or not loaded.file.probes
        if effort == "exact" and not compares_all:
            blocks = (block for block in self._all_blocks(db, allowed) if len(block[0]))
            found = [flat_part(block, self.scoring).search(queries, wanted, None) for block in blocks]
        else:
            found = [part.search(queries, wanted, allowed, thorough=effort != "quick") for part in loaded.parts]
        if not found:
            return np.zeros((len(queries), 0), dtype=np.int64), True
        ids = np.hstack([numbers for _, numbers in found])
        sign = -1 if self.scoring.metric == "inner_product" else 1
        distances = np.where(ids < 0, np.inf, sign * np.hstack([distances for distances, _ in found]))
        # All have come when no query has filled its places.
        is_complete = (compares_all or effort != "quick") and not ((ids >= 0).sum(axis=1) >= wanted).any()
        order = np.argsort(distances, axis=1, kind="stable")[:, :wanted]
        return np.take_along_axis(ids, order, axis=1), is_complete

    def _current(self, db: Connection) -> _Loaded:
        """Return all points of the transaction, and begin to build where too many are in memory."""
        last = last_point(db, self.model, self.side)
        loaded = self._loaded
        if loaded is not None and last <= loaded.last and not self._looks_again(loaded):
            return loaded
        with self._refresh:
            loaded = self._loaded
            if loaded is None or self._looks_again(loaded):
                loaded = self._opened(loaded, last)
            if last > loaded.last:
                loaded = self._with_newer(db, loaded, last)
            self._loaded = loaded
        if self._is_due(db, loaded):
            self._build_in_background()
        return loaded

    def _looks_again(self, loaded: _Loaded) -> bool:
        return bool(loaded.tail) and time.monotonic() - self._looked > LOOK_EVERY_S

    def _opened(self, loaded: _Loaded | None, last: int) -> _Loaded:
        """Return the newest vector file, where it is newer than the one that is loaded."""
        self._looked = time.monotonic()
        for covered, folder in vector_folders(self.store.derived, self.model, self.side):
            if covered > last:
                continue
            if loaded is not None and covered <= loaded.covered:
                break
            part = read_part(folder)
            if part is not None:
                return _Loaded(part, covered, (), (), covered)
            _log.warning("the vector file %s is damaged; it is made anew", folder)
        return loaded or _Loaded(None, 0, (), (), 0)

    def _with_newer(self, db: Connection, loaded: _Loaded, last: int) -> _Loaded:
        tail, newest = list(loaded.tail), list(loaded.newest)
        for block in point_blocks(db, self.model, self.side, loaded.last, last):
            if tail and newest and len(tail[-1]) < MERGE_BELOW:
                before = newest.pop()
                tail.pop()
                ids, contents, parts, vectors = (np.concatenate(pair) for pair in zip(before, block, strict=True))
                block = ids, contents, parts, vectors
            tail.append(flat_part(block, self.scoring))
            newest = [block] if len(block[0]) < MERGE_BELOW else []
        return _Loaded(loaded.file, loaded.covered, tuple(tail), tuple(newest), last)

    def _is_due(self, db: Connection, loaded: _Loaded) -> bool:
        n_file = 0 if loaded.file is None else len(loaded.file)
        if loaded.n_tail > max(MIN_REBUILD_ROWS, REBUILD_SHARE * n_file):
            return True
        if not n_file or time.monotonic() - self._counted < COUNT_EVERY_S:
            return False
        self._counted = time.monotonic()
        # Counting up to an id would read the rows; counting all reads the index over contents.
        return point_count(db, self.model, self.side) - loaded.n_tail < (1 - DEAD_SHARE) * n_file

    def _build_in_background(self) -> None:
        if self._builder is None or not self._builder.is_alive():
            self._builder = threading.Thread(target=self._build_quietly, name="diptych-vectors", daemon=True)
            self._builder.start()

    def _build_quietly(self) -> None:
        try:
            with self.store.reading() as db:
                points = point_count(db, self.model, self.side)
            newest = next(
                (read_part(path) for _, path in vector_folders(self.store.derived, self.model, self.side)), None
            )
            n_file = 0 if newest is None else len(newest)
            # Another process may have built it meanwhile.
            is_outgrown = points - n_file > max(MIN_REBUILD_ROWS, REBUILD_SHARE * n_file)
            if is_outgrown or points < (1 - DEAD_SHARE) * n_file:
                self.build()
            self._loaded = None
        except (DiptychError, OSError, RuntimeError, ValueError) as problem:
            _log.warning("the vector file of %s points is not built: %s", self.side, problem)

    def _write(self) -> None:
        with self.store.reading() as db:
            count, last = point_count(db, self.model, self.side), last_point(db, self.model, self.side)
            width, _ = point_form(db, self.model)
        if not count:
            return
        if self.scoring.metric == "hamming" or count <= MAX_FLAT:
            blocks = list(self._blocks(last))
            ids, contents, parts, vectors = (np.concatenate(column) for column in zip(*blocks, strict=True))
            part = flat_part((ids, contents, parts, vectors), self.scoring)
        else:
            training = self._sample(ROWS_PER_LIST * list_count(count), count, last)
            part = inverted_part(training, self._queries(training), lambda: self._blocks(last), count, self.scoring)
        about = {"count": len(part), "width": width, "form": self.scoring.form}
        write_part(self.store.derived, self.model, self.side, part, about)

    def _blocks(self, last: int) -> Iterator[PointBlock]:
        """Yield all points up to an id, each block in a transaction of its own: long readers hold up checkpoints."""
        after = 0
        while True:
            with self.store.reading() as db:
                block = next(point_blocks(db, self.model, self.side, after, last), None)
            if block is None:
                return
            yield block
            after = int(block[0][-1])
            if len(block[0]) < ROWS_AT_ONCE:
                return

    def _sample(self, wanted: int, count: int, last: int) -> AnyArray:
        """Return about so many random points."""
        rng = np.random.default_rng(0)
        tried = min(last, int(1.05 * wanted * last / count))
        ids = 1 + rng.choice(last, tried, replace=False)
        with self.store.reading() as db:
            return points_with(db, self.model, self.side, ids)[3]

    def _queries(self, training: AnyArray) -> AnyArray:
        """Return points as examples of what is asked: cosines are asked by points of the other side."""
        queries = training[:: max(1, len(training) // TUNING_QUERIES)][:TUNING_QUERIES]
        if not self.scoring.is_cosine:
            return queries
        other: PointKind = "image" if self.side == "text" else "text"
        with self.store.reading() as db:
            last = last_point(db, self.model, other)
            ids = 1 + np.random.default_rng(0).integers(0, last or 1, TUNING_QUERIES // 2)
            others = points_with(db, self.model, other, ids)[3]
        return np.concatenate([others, queries[: TUNING_QUERIES - len(others)]])


@contextmanager
def build_lock(store: Store) -> Iterator[bool]:
    """Be the only one, of all processes, who builds a vector file of a store; yields False where another one builds."""
    store.derived.mkdir(exist_ok=True)
    with (store.derived / BUILD_LOCK).open("ab") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
