"""The vector index of a collection in a folder: a file of faiss, and the points that are newer in memory.

All points are compared, or above 100,000 those of some inverted lists.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.atomic_files import damage_of, damage_of_note, file_checksum, make_durable, read_json, write_json
from diptych.collection.packages import search_package
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
from diptych.collection.vectors.neighbours import Effort, IndexStatus, PointBlock, VectorIndex, allowed_rows
from diptych.errors import DiptychError

MAX_FLAT = 100_000
ROWS_PER_LIST = 40
TRAINING_ROUNDS = 10
PROBES = 16
SHARE_FACTOR = 0.12
"""Behind a filter that allows less than this share, more lists are probed."""

TARGET_RECALL = 0.96
TUNING_QUERIES = 200
TUNING_SHARE = 0.1
NEIGHBOURS = 10
MIN_CANDIDATES = 100
"""So many candidates of inverted lists are compared by their stored rows at least, because codes are coarse."""
MIN_CODED_WIDTH = 64
"""Points with fewer numbers are stored with 8 bits for each: they are small, and coarse codes of them say little."""
MIN_QUERIES_TOGETHER = 20
"""So many queries are compared with all points faster by a product of matrices than one by one."""
ROWS_TOGETHER = 1 << 14
CHECKED_BYTES = 64 << 20
"""Larger files are not read whole when they are opened: a changed byte of inverted lists can hide a point at most."""
INDEX = "index.faiss"
ROWS = "rows.npy"
NOTE = "made.json"
DRAFT = ".points-"
_FOLDER = re.compile(r"points-(\d+)-(image|text|region)-(\d+)")
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

    def _min_candidates(self, db: Connection) -> int:
        file = self._current(db).file
        return MIN_CANDIDATES if file is not None and file.probes else 0

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
            with self.store.reading() as db:
                queries = self._example_queries(db, TUNING_QUERIES)
            part = inverted_part(training, queries, lambda: self._blocks(last), count, self.scoring)
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


@dataclass(frozen=True)
class VectorPart:
    """Points in the order of their ids, with the faiss index over them. ``probes`` is 0 where all are compared."""

    engine: Any
    ids: IntArray
    contents: IntArray
    probes: int = 0
    recall: float = 1.0

    def __len__(self) -> int:
        return len(self.ids)

    def search(
        self, queries: AnyArray, k: int, allowed: BoolArray | None, *, thorough: bool = False
    ) -> tuple[FloatArray, IntArray]:
        """Return (distances, point ids) of about the ``k`` nearest; id −1 where there are fewer."""
        faiss = search_package("faiss")
        # faiss divides the work by queries: for a single one, a second thread would only be waited for.
        faiss.omp_set_num_threads(min(len(queries), os.cpu_count() or 1) or 1)
        options: dict[str, Any] = {}
        share = 1.0
        chosen = None if allowed is None else allowed_rows(allowed, self.contents)
        if not self.probes and len(queries) >= MIN_QUERIES_TOGETHER and queries.dtype != np.uint8:
            return self._search_together(queries, k, chosen)
        if chosen is not None:
            share = np.count_nonzero(chosen) / len(chosen)
            if not share:
                return np.zeros((len(queries), 0), dtype=np.float32), np.zeros((len(queries), 0), dtype=np.int64)
            bits = np.packbits(chosen, bitorder="little")
            if share < 1:
                # faiss keeps bare addresses: the array of bits must outlive the search.
                options["sel"] = faiss.IDSelectorBitmap(len(chosen), faiss.swig_ptr(bits))
        if self.probes:
            lists = int(self.engine.nlist)
            probes = lists if thorough else probes_for(self.probes, share, lists, k, len(self))
            params = faiss.SearchParametersIVF(nprobe=probes, **options)
        else:
            params = faiss.SearchParameters(**options) if options else None
        distances, places = self.engine.search(np.ascontiguousarray(queries), min(k, len(self)), params=params)
        is_known = (places >= 0) & (places < len(self))
        return distances, np.where(is_known, self.ids[np.where(is_known, places, 0)], -1)

    def _search_together(self, queries: AnyArray, k: int, chosen: BoolArray | None) -> tuple[FloatArray, IntArray]:
        """Compare many queries with all rows by products of matrices, a block of rows at a time."""
        nearest = _Nearest(queries, self.engine.metric_type, min(k, len(self)))
        for start in range(0, len(self), ROWS_TOGETHER):
            vectors = self.engine.reconstruct_n(start, min(ROWS_TOGETHER, len(self) - start))
            rows = slice(None) if chosen is None else chosen[start : start + ROWS_TOGETHER]
            nearest.add(vectors[rows], self.ids[start : start + ROWS_TOGETHER][rows])
        return nearest.distances, nearest.ids


def probes_for(probes: int, share: float, lists: int, k: int, n_rows: int) -> int:
    """Return how many lists to probe when a share of the rows is allowed: so many that they hold ``k`` rows twice."""
    for_share = probes * max(1.0, SHARE_FACTOR / share)
    for_count = 2 * k * lists / (share * n_rows)
    return min(lists, int(np.ceil(max(for_share, for_count))))


def flat_part(block: PointBlock, scoring: Scoring) -> VectorPart:
    """Return points in memory, all of which are compared."""
    faiss = search_package("faiss")
    ids, contents, _, vectors = block
    if scoring.metric == "hamming":
        engine = faiss.IndexBinaryFlat(8 * vectors.shape[1])
        engine.add(np.ascontiguousarray(vectors))
    else:
        engine = faiss.index_factory(vectors.shape[1], "SQfp16", _metric(scoring))
        # The codes of faiss are the float16 numbers as they are: no detour through float32.
        faiss.copy_array_to_vector(np.ascontiguousarray(vectors).view(np.uint8).ravel(), engine.codes)
        engine.ntotal = len(ids)
    return VectorPart(engine, ids, contents)


def list_count(n_rows: int) -> int:
    """Return among how many lists so many rows are split.

    >>> list_count(1_000_000)
    2048
    """
    return int(2 ** round(np.log2(2 * n_rows**0.5)))


def inverted_part(
    training: AnyArray, queries: AnyArray, blocks: Callable[[], Iterator[PointBlock]], n_rows: int, scoring: Scoring
) -> VectorPart:
    """Return inverted lists over the points of all blocks, tuned on queries to a recall."""
    width = training.shape[1]
    if width >= MIN_CODED_WIDTH and width % 2 == 0:
        # Codes of 4 bits for two numbers are scanned five times as fast as numbers of 8 bits; the stored rows of what
        # they find are compared anyway.
        part = _inverted_part(f"PQ{width // 2}x4fs", training, queries, blocks, n_rows, scoring)
        if part.recall >= TARGET_RECALL:
            return part
    return _inverted_part("SQ8", training, queries, blocks, n_rows, scoring)


def _inverted_part(
    codes: str,
    training: AnyArray,
    queries: AnyArray,
    blocks: Callable[[], Iterator[PointBlock]],
    n_rows: int,
    scoring: Scoring,
) -> VectorPart:
    faiss = search_package("faiss")
    engine = faiss.index_factory(training.shape[1], f"IVF{list_count(n_rows)},{codes}", _metric(scoring))
    engine.cp.niter = TRAINING_ROUNDS
    engine.train(training.astype(np.float32))
    truth, masked = (_Nearest(queries, _metric(scoring), NEIGHBOURS) for _ in range(2))
    ids, contents, allowed = [], [], []
    rng = np.random.default_rng(0)
    for block in blocks():
        vectors = block[3].astype(np.float32)
        engine.add(vectors)
        chosen = rng.random(len(vectors)) < TUNING_SHARE
        truth.add(vectors, block[0])
        masked.add(vectors[chosen], block[0][chosen])
        ids.append(block[0])
        contents.append(block[1])
        allowed.append(chosen)
    all_ids = np.concatenate(ids)
    # The mask of the trial is by row: as if each row were a content of its own.
    trial = VectorPart(engine, all_ids, np.arange(len(all_ids)), PROBES)
    mask = np.concatenate(allowed)
    lists, probes = int(engine.nlist), PROBES
    while True:
        trial = VectorPart(engine, all_ids, trial.contents, probes)
        recall = min(truth.recall(trial, None), masked.recall(trial, mask))
        if recall >= TARGET_RECALL or probes >= lists:
            return VectorPart(engine, all_ids, np.concatenate(contents), probes, recall)
        probes = min(lists, probes + max(1, probes // 4))


class _Nearest:
    """The ``k`` nearest points of some queries, found while all points pass by."""

    def __init__(self, queries: AnyArray, metric: int, k: int) -> None:
        self._queries = np.ascontiguousarray(queries, dtype=np.float32)
        self._metric, self._k = metric, k
        self._sign = 1 if metric == search_package("faiss").METRIC_L2 else -1
        self.distances = np.zeros((len(queries), 0), dtype=np.float32)
        self.ids = np.zeros((len(queries), 0), dtype=np.int64)

    def add(self, vectors: FloatArray, ids: IntArray) -> None:
        """Compare more points."""
        if not len(ids):
            return
        found, places = search_package("faiss").knn(self._queries, vectors, min(self._k, len(ids)), metric=self._metric)
        distances, numbers = np.hstack([self.distances, found]), np.hstack([self.ids, ids[places]])
        order = np.argsort(self._sign * distances, axis=1, kind="stable")[:, : self._k]
        self.distances = np.take_along_axis(distances, order, axis=1)
        self.ids = np.take_along_axis(numbers, order, axis=1)

    def recall(self, part: VectorPart, allowed: BoolArray | None) -> float:
        """Return the share of the nearest points that are among the candidates of a part."""
        _, found = part.search(self._queries, MIN_CANDIDATES, allowed)
        return float((self.ids[:, :, None] == found[:, None, :]).any(axis=2).mean())


def _metric(scoring: Scoring) -> int:
    faiss = search_package("faiss")
    return int(faiss.METRIC_L2 if scoring.metric == "l2" else faiss.METRIC_INNER_PRODUCT)


def write_part(derived: Path, model: int, side: PointKind, part: VectorPart, about: dict[str, Any]) -> None:
    """Write a part as files of a folder of its own, whole or not at all, and remove older folders of the same side.

    The caller has the lock of building: drafts that are there are those of builds that were killed.
    """
    faiss = search_package("faiss")
    for abandoned in derived.glob(f"{DRAFT}*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    draft = derived / f"{DRAFT}{uuid.uuid4().hex[:12]}"
    draft.mkdir(parents=True)
    try:
        write = faiss.write_index_binary if _is_binary(part.engine) else faiss.write_index
        write(part.engine, str(draft / INDEX))
        np.save(draft / ROWS, np.stack([part.ids, part.contents]))
        checksums = {name: file_checksum(draft / name) for name in (INDEX, ROWS)}
        covered = int(part.ids[-1])
        note = {"covered": covered, "probes": part.probes, "recall": part.recall, "files": checksums, **about}
        write_json(draft / NOTE, note)
        make_durable(draft)
        final = derived / f"points-{model}-{side}-{covered}"
        if final.exists():
            shutil.rmtree(final)
        draft.rename(final)
        for covered_before, folder in vector_folders(derived, model, side):
            if covered_before < covered:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def read_part(folder: Path) -> VectorPart | None:
    """Return the part of a folder, mapped; None where anything is missing or has another size."""
    faiss = search_package("faiss")
    try:
        note = read_json(folder / NOTE)
        if any(
            damage_of(folder / name, known, all_bytes=known[0] <= CHECKED_BYTES)
            for name, known in note["files"].items()
        ):
            return None
        read = faiss.read_index_binary if note["form"] == "bits" else faiss.read_index
        engine = read(str(folder / INDEX), faiss.IO_FLAG_MMAP_IFC)
        ids, contents = np.load(folder / ROWS, mmap_mode="r", allow_pickle=False)
        if not len(ids) == len(contents) == engine.ntotal:
            return None
        return VectorPart(engine, ids, contents, int(note["probes"]), float(note["recall"]))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None


def vector_folders(derived: Path, model: int | None = None, side: PointKind | None = None) -> list[tuple[int, Path]]:
    """Return (covered id, folder) of the vector files of a model's side or of all, the newest first."""
    found = []
    for folder in derived.glob("points-*"):
        match = _FOLDER.fullmatch(folder.name)
        if match and model in (None, int(match[1])) and side in (None, match[2]):
            found.append((int(match[3]), folder))
    return sorted(found, reverse=True)


def damage_of_vector_files(derived: Path, *, all_bytes: bool = True) -> dict[str, str]:
    """Return what is wrong with vector files, by path below the folder. Removing their folder mends them."""
    damage: dict[str, str] = {}
    for _, folder in vector_folders(derived):
        if not all((folder / name).exists() for name in (INDEX, ROWS, NOTE)):
            # What an interrupted removal left of a folder is never read.
            continue
        if (wrong := damage_of_note(folder / NOTE)) is not None:
            damage[f"{folder.name}/{NOTE}"] = wrong
            continue
        for name, known in read_json(folder / NOTE)["files"].items():
            if (wrong := damage_of(folder / name, known, all_bytes=all_bytes)) is not None:
                damage[f"{folder.name}/{name}"] = wrong
    return damage


def _is_binary(engine: Any) -> bool:
    return "Binary" in type(engine).__name__
