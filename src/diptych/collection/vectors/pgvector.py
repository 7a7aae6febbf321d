"""The vector index of a collection in PostgreSQL: HNSW of pgvector, exact where few contents are allowed."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any, cast

import numpy as np

from diptych.arrays import AnyArray, BoolArray, IntArray
from diptych.collection.retriever_protocol import PointKind
from diptych.collection.store.dialect import Connection, has_table
from diptych.collection.store.points import last_point, point_count, point_form, point_table
from diptych.collection.store.postgres import PostgresStore
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store
from diptych.collection.vectors.neighbours import (
    MAX_EXACT_IDS,
    OVERFETCH,
    Effort,
    IndexStatus,
    VectorIndex,
    allowed_rows,
)
from diptych.errors import DiptychError

EF_SEARCH = (40, 100, 200, 400)
MAX_EF_SEARCH = 1000
MAX_SCANNED = 40_000
TARGET_RECALL = 0.95
TUNING_QUERIES = 50
TUNING_SHARES = (1.0, 0.3, 0.1)
NEIGHBOURS = 10
MAX_HNSW_WIDTH = 4000
_OPERATORS = {
    "inner_product": ("<#>", "halfvec_ip_ops"),
    "l2": ("<->", "halfvec_l2_ops"),
    "hamming": ("<~>", "bit_hamming_ops"),
}
_log = logging.getLogger(__name__)


class PostgresVectorIndex(VectorIndex):
    """Vectors in a table of PostgreSQL. Every point that is committed is in its index."""

    def __init__(self, store: Store, model: int, side: PointKind, scoring: Scoring) -> None:
        super().__init__(store, model, side, scoring)
        self._table = point_table(model, side)
        self._index = f"{self._table}_hnsw"
        self._ef = 0
        self._builder: threading.Thread | None = None

    def build(self) -> None:
        """Create the HNSW index if there are enough points, and choose how far searches look.

        Not within a transaction of this thread: the server waits for all of them.
        """
        with self.store.reading() as db:
            count = point_count(db, self.model, self.side)
            width, dtype = point_form(db, self.model)
            too_wide = dtype != np.uint8 and width > MAX_HNSW_WIDTH
        if self.scoring.metric is None or count <= MAX_EXACT_IDS or too_wide:
            return
        _, operators = _OPERATORS[self.scoring.metric]
        with self.store.reading() as db:
            found = self._found_index(db)
        if found is not None and not found[0]:
            # An index whose building was interrupted is never used.
            self._maintain(f"DROP INDEX IF EXISTS {self._index}")
        self._maintain(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {self._index} ON {self._table} USING hnsw (v {operators})"
        )
        with self.store.reading() as db:
            ef, recall = self._tuned(db)
        self._maintain(f"COMMENT ON INDEX {self._index} IS '{json.dumps({'ef': ef, 'recall': recall})}'")
        self._ef = ef

    def _maintain(self, statement: str) -> None:
        cast(PostgresStore, self.store).maintain(statement)

    def catch_up(self) -> None:
        """Create the index where there is none for many points."""
        with self.store.reading() as db:
            if not has_table(db, self._table):
                # Another process has removed the search model.
                return
            found, last = self._found_index(db), last_point(db, self.model, self.side)
        if last > MAX_EXACT_IDS and not (found and found[0] and found[1]):
            self._build_quietly()

    def status(self, db: Connection) -> IndexStatus:
        """Return what the index covers: all points, where there is one."""
        points, last = point_count(db, self.model, self.side), last_point(db, self.model, self.side)
        found = self._found_index(db)
        if found is None or not found[0]:
            return IndexStatus(points, 0, 0, "all compared", 1.0)
        return IndexStatus(points, points, last, "HNSW", float(found[1].get("recall", 0)))

    def compares_all(self, db: Connection, n_allowed: int) -> bool:
        """Return True if a search among so many allowed contents compares all of their points."""
        if super().compares_all(db, n_allowed):
            return True
        found = self._found_index(db)
        return found is None or not found[0]

    def _candidates(
        self, db: Connection, queries: AnyArray, wanted: int, allowed: BoolArray | None, effort: Effort
    ) -> tuple[IntArray, bool]:
        last = last_point(db, self.model, self.side)
        if not last:
            return np.zeros((len(queries), 0), dtype=np.int64), True
        n_allowed = last if allowed is None else int(np.count_nonzero(allowed))
        if allowed is not None and n_allowed <= MAX_EXACT_IDS:
            ids = np.flatnonzero(allowed)
            found = [self._of_contents(db, query, wanted, ids) for query in queries]
            return _padded(found, wanted), all(len(one) < wanted for one in found)
        limit = int(np.ceil(wanted * max(1.0, last / max(1, n_allowed))))
        ef = 0 if effort != "quick" else self._ef_search(db, last)
        found, is_complete = [], True
        for query in queries:
            rows = self._nearest_rows(db, query, limit, ef)
            is_complete &= not ef and len(rows) < limit
            chosen = rows if allowed is None else rows[allowed_rows(allowed, rows[:, 1])]
            found.append(chosen[:wanted, 0])
            is_complete &= len(chosen) <= wanted
        return _padded(found, wanted), is_complete

    def _of_contents(self, db: Connection, query: AnyArray, wanted: int, contents: IntArray) -> IntArray:
        """Return ids of the nearest points of some contents, all compared."""
        condition, values = db.among("content", contents)
        distance, text = self._distance(query)
        rows = db.rows(
            f"SELECT id FROM {self._table} WHERE {condition} ORDER BY ({distance}) + 0, content LIMIT ?",
            (*values, text, wanted),
        )
        return np.array([row[0] for row in rows], dtype=np.int64)

    def _nearest_rows(self, db: Connection, query: AnyArray, limit: int, ef: int) -> IntArray:
        """Return (id, content) of the nearest points, from the index with ``ef`` or by comparing all for 0."""
        distance, text = self._distance(query)
        if ef:
            settings = {
                "hnsw.ef_search": min(MAX_EF_SEARCH, max(ef, limit)),
                "hnsw.iterative_scan": "relaxed_order",
                "hnsw.max_scan_tuples": max(MAX_SCANNED, 2 * limit),
                "hnsw.scan_mem_multiplier": 4,
            }
            for name, value in settings.items():
                db.run(f"SET LOCAL {name} = {value}")
        else:
            # An expression over the distance keeps the planner from the index; nothing else does.
            distance = f"({distance}) + 0"
        rows = db.rows(f"SELECT id, content, {distance} AS d FROM {self._table} ORDER BY d LIMIT ?", (text, limit))
        # What an iterative scan returns is nearly ordered.
        rows.sort(key=lambda row: (row[2], row[0]))
        return np.array([row[:2] for row in rows], dtype=np.int64).reshape(len(rows), 2)

    def _distance(self, query: AnyArray) -> tuple[str, str]:
        """Return the expression of the distance to a query, and the value of its ``?``."""
        operator, _ = _OPERATORS[str(self.scoring.metric)]
        if self.scoring.metric == "hamming":
            return f"v {operator} ?::bit({8 * len(query)})", "".join(map(str, np.unpackbits(query)))
        numbers = np.clip(query, -65504, 65504).astype(np.float16).astype(np.float64)
        return f"v {operator} ?::halfvec({len(query)})", json.dumps(numbers.tolist())

    def _ef_search(self, db: Connection, last: int) -> int:
        """Return how far the index searches; 0 where there is none yet, which starts building it in the background."""
        if not self._ef and last > MAX_EXACT_IDS:
            found = self._found_index(db)
            if found is not None and found[0] and found[1]:
                self._ef = int(found[1]["ef"])
            elif self._builder is None:
                self._builder = threading.Thread(target=self._build_quietly, name="diptych-vectors", daemon=True)
                self._builder.start()
        return self._ef

    def _build_quietly(self) -> None:
        try:
            self.build()
        except DiptychError as problem:
            _log.warning("the vector index of %s is not built: %s", self._table, problem)
        finally:
            self._builder = None

    def _found_index(self, db: Connection) -> tuple[bool, dict[str, Any]] | None:
        """Return if the index is valid, and what was measured; None where there is none."""
        rows = db.rows(
            "SELECT indisvalid, obj_description(indexrelid) FROM pg_index WHERE indexrelid = to_regclass(?)",
            (self._index,),
        )
        return (bool(rows[0][0]), json.loads(rows[0][1] or "{}")) if rows else None

    def _tuned(self, db: Connection) -> tuple[int, float]:
        """Return the smallest ``ef_search`` with enough recall on stored points, plain and behind random masks."""
        rng, queries = np.random.default_rng(0), self._example_queries(db, TUNING_QUERIES)
        highest = int(db.value("SELECT max(id) FROM content") or 0)
        masks = [None if share == 1 else rng.random(highest + 1) < share for share in TUNING_SHARES]
        truth = [self._candidates(db, queries, NEIGHBOURS, mask, "exact")[0] for mask in masks]
        recall = 0.0
        for ef in EF_SEARCH:
            self._ef = ef
            found = [self._candidates(db, queries, OVERFETCH * NEIGHBOURS, mask, "quick")[0] for mask in masks]
            recall = min(_recall(*pair) for pair in zip(truth, found, strict=True))
            if recall >= TARGET_RECALL:
                break
        return ef, recall


def _recall(truth: IntArray, found: IntArray) -> float:
    hits = (truth[:, :, None] == found[:, None, :]).any(axis=2)[truth >= 0]
    return float(hits.mean()) if len(hits) else 1.0


def _padded(found: list[IntArray], width: int) -> IntArray:
    rows = np.full((len(found), width), -1, dtype=np.int64)
    for number, ids in enumerate(found):
        rows[number, : len(ids)] = ids[:width]
    return rows
