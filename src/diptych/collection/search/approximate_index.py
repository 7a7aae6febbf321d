"""How points are scored, and approximate search: inverted lists of faiss, tuned to a recall, beside the store."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks, unit_rows
from diptych.atomic_files import atomic_write, damage_of, damage_of_note, file_checksum, read_json, write_json
from diptych.codes import hamming_distances
from diptych.collection.storage.layout import search_package
from diptych.space import Direction, IndexForm, Space

_LINEAR = ("cosine", "pearson", "covariance", "dot", "corrected")
_ENTRIES_AT_ONCE = 1 << 24

_TARGET_RECALL = 0.98
_NEIGHBOURS = 10
_TUNING_QUERIES = 256
ROWS_PER_LIST = 40
_TRAINING_ROUNDS = 10
_ROWS_PER_ANSWER = 4
LARGEST_FLAT = 1 << 28
# Beyond this, lists are too large for every process to have them in its own memory.
LARGEST_PACKED = 1 << 31
# What exact scores choose from: for each answer, at least, and how many more than answers at most.
_FROM_PACKED, _FROM_BYTES, _LEAST_FROM_PACKED, _MOST_MORE = 4, 2, 100, 1000
_ROWS_AT_ONCE = 1 << 16
_DIGESTED = 1 << 20

ListForm = Literal["vectors", "packed", "bytes"]


@dataclass(frozen=True)
class Scoring:
    """The scores of one space; in a *linear* one, inner products of vectors that the gallery keeps prepared."""

    space: Space
    direction: Direction

    @cached_property
    def is_linear(self) -> bool:
        """Whether scores are inner products of prepared vectors."""
        return self.space.name in _LINEAR and self.space.split is None

    @property
    def is_cosine(self) -> bool:
        """Whether scores are cosines, so that those of a combined query read like those of a single one."""
        return self.is_linear and self.space.name in ("cosine", "pearson")

    @property
    def index_metric(self) -> Literal["inner_product", "l2"] | None:
        """The metric of an approximate index, or None where only exact search serves the space."""
        if self.is_linear:
            return "inner_product"
        return "l2" if self.space.name == "euclidean" and self.space.split is None else None

    @property
    def is_hash_codes(self) -> bool:
        """Whether points are packed binary codes, compared by Hamming distance."""
        return self.space.name == "hamming" and self.space.split is None

    @property
    def is_symmetric(self) -> bool:
        """Whether a score is the same from whichever side is asked, so that one gallery serves both."""
        return self.index_metric is not None or self.is_hash_codes

    @cached_property
    def _form(self) -> IndexForm | None:
        return self.space.indexable(self.direction) if self.is_linear else None

    def stored(self, points: AnyArray) -> AnyArray:
        """Return gallery points as they are kept."""
        if points.dtype == np.uint8:
            return points
        kept = points if self._form is None else self._form.gallery(points)
        return np.ascontiguousarray(kept, dtype=np.float32)

    def query_vectors(self, points: AnyArray) -> AnyArray:
        """Return query points as they are compared with kept ones."""
        if self._form is None:
            return points
        return np.ascontiguousarray(self._form.queries(points), dtype=np.float32)

    def combined(self, queries: AnyArray, weights: FloatArray) -> FloatArray:
        """Return one query vector for several weighted terms of a linear space: along Σ wᵢ·uᵢ, all of unit length."""
        return np.asarray(unit_rows((weights @ unit_rows(queries))[None, :]), dtype=np.float32)

    def scores(self, queries: AnyArray, kept: AnyArray) -> FloatArray:
        """Return the (queries, kept rows) matrix of scores; the caller blocks the queries."""
        if self.is_linear:
            products = queries @ kept.T
            # Dividing by one would read and write every score once more.
            return np.asarray(products / kept.shape[-1] if self.space.name == "covariance" else products)
        if self.index_metric == "l2":
            return self._distances(queries, kept)
        if self.is_hash_codes:
            return -hamming_distances(queries, kept).astype(np.float32)
        return self.space.compare(queries, kept, self.direction)

    def paired_scores(self, queries: AnyArray, kept: AnyArray) -> FloatArray:
        """Return the scores of each query with its own rows: (queries, d) and (queries, k, d) give (queries, k)."""
        if self.is_linear:
            divisor = float(kept.shape[-1]) if self.space.name == "covariance" else 1.0
            # Not by a product of matrices: its threads wait on their cores afterwards, where words are looked for.
            return np.asarray(np.einsum("qd,qkd->qk", queries, kept) / divisor)
        return np.asarray(-((kept - queries[:, None, :]) ** 2).sum(axis=2, dtype=np.float64))

    @staticmethod
    def _distances(queries: AnyArray, kept: AnyArray) -> FloatArray:
        # Differences instead of the expansion |q|² − 2qg + |g|²: far from the origin float32 cannot afford that.
        scores = np.empty((len(queries), len(kept)))
        for rows in row_blocks(len(kept), _ENTRIES_AT_ONCE // (16 * max(1, kept.shape[1]))):
            for number, query in enumerate(queries):
                difference = kept[rows] - query
                scores[number, rows] = -np.einsum("gd,gd->g", difference, difference)
        return scores


class ApproximateIndex:
    """An inverted-file index over a fixed set of rows (Jégou et al., TPAMI 2011; Douze et al., "The Faiss library").

    The rows are split among about 4√n lists by k-means, and a query looks into the nearest lists only: as many as give
    sample queries a recall of at least 0.98 among the ten nearest. Up to 256 MiB of vectors the lists hold them as they
    are; up to 2 GiB four bits for two numbers (product quantisation), which are compared many at a time (André,
    Kermarrec and Le Scouarnec, "Quicker ADC", TPAMI 2021) and lie in the memory of each process; beyond that one byte
    per number, mapped from disk. Answers are scored again with the exact vectors.
    """

    def __init__(self, engine: Any, probes: int, recall: float) -> None:
        self.engine = engine
        # Asking the engine for its numbers takes a tenth of a search.
        self._rows, self._lists = int(engine.ntotal), int(engine.nlist)
        self.probes = probes
        self.recall = recall

    def __len__(self) -> int:
        return self._rows

    @property
    def is_packed(self) -> bool:
        """Whether the lists hold four bits for two numbers."""
        return "FastScan" in type(self.engine).__name__

    @property
    def is_coarse(self) -> bool:
        """Whether the lists hold rounded vectors, so that answers should be scored again."""
        return self.is_packed or "ScalarQuantizer" in type(self.engine).__name__

    def wanted(self, k: int) -> int:
        """Return how many rows to ask for, because exact scores may put others first, to have the ``k`` nearest."""
        if self.is_packed:
            return max(_LEAST_FROM_PACKED, min(_FROM_PACKED * k, k + _MOST_MORE))
        return _FROM_BYTES * k if self.is_coarse else k

    @classmethod
    def build(
        cls, vectors: FloatArray, metric: Literal["inner_product", "l2"], queries: FloatArray | None = None
    ) -> ApproximateIndex:
        """Index the rows; ``queries`` are examples of what will be asked, by default some of the rows."""
        asked = vectors if queries is None or not len(queries) else queries
        asked = np.ascontiguousarray(asked[np.random.default_rng(1).permutation(len(asked))[:_TUNING_QUERIES]])
        form = list_form(vectors.shape)
        index = cls._built(vectors, metric, form, asked)
        if form == "packed" and index.recall < _TARGET_RECALL:
            # Two bits a number do not tell these points apart.
            index = cls._built(vectors, metric, "bytes", asked)
        return index

    @classmethod
    def _built(
        cls, vectors: FloatArray, metric: Literal["inner_product", "l2"], form: ListForm, asked: FloatArray
    ) -> ApproximateIndex:
        faiss = search_package("faiss")
        lists = list_count(len(vectors))
        kind = {"vectors": "Flat", "packed": f"PQ{vectors.shape[1] // 2}x4fs", "bytes": "SQ8"}[form]
        measure = faiss.METRIC_INNER_PRODUCT if metric == "inner_product" else faiss.METRIC_L2
        engine = faiss.index_factory(vectors.shape[1], f"IVF{lists},{kind}", measure)
        engine.cp.niter = _TRAINING_ROUNDS
        sample = np.random.default_rng(0).permutation(len(vectors))[: ROWS_PER_LIST * lists]
        engine.train(vectors[np.sort(sample)])
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            engine.add(np.ascontiguousarray(vectors[start : start + _ROWS_AT_ONCE]))
        index = cls(engine, 1, 0.0)
        index._tune(asked, vectors, measure, lists)
        return index

    def search(self, queries: FloatArray, k: int, allowed: BoolArray | None = None) -> tuple[FloatArray, IntArray]:
        """Return engine scores and positions of the ``k`` nearest; −1 where there are fewer.

        ``allowed`` marks the positions that may be returned; the fewer they are, the more lists are looked into.
        """
        found: tuple[FloatArray, IntArray]
        # So many lists that they hold a few times as many rows as are asked for.
        probes = max(self._probes, -(-_ROWS_PER_ANSWER * k * self._lists // self._rows))
        if allowed is None and probes == self._probes:
            # Handing parameters over with every search costs a tenth of the search.
            found = self.engine.search(queries, k)
            return found
        faiss = search_package("faiss")
        if allowed is None:
            chosen = faiss.SearchParametersIVF(nprobe=min(probes, self._lists))
            found = self.engine.search(queries, k, params=chosen)
            return found
        share = max(1e-9, np.count_nonzero(allowed) / len(allowed))
        probes = min(self._lists, int(np.ceil(probes / share)))
        bits = np.packbits(allowed, bitorder="little")
        # The engine keeps bare addresses: bits and selector must outlive the search.
        selector = faiss.IDSelectorBitmap(len(allowed), faiss.swig_ptr(bits))
        found = self.engine.search(queries, k, params=faiss.SearchParametersIVF(nprobe=probes, sel=selector))
        return found

    @property
    def probes(self) -> int:
        """How many lists a search looks into."""
        return self._probes

    @probes.setter
    def probes(self, number: int) -> None:
        # Kept by the engine: handing it over with every search costs a tenth of the search.
        self.engine.nprobe = self._probes = number

    def _tune(self, queries: FloatArray, vectors: AnyArray, measure: int, lists: int) -> None:
        faiss = search_package("faiss")
        k = min(_NEIGHBOURS, len(vectors))
        _, truth = faiss.knn(queries, vectors, k, metric=measure)
        while True:
            _, found = self.search(queries, min(self.wanted(k), len(vectors)))
            hits = (truth[:, :, None] == found[:, None, :]).any(axis=2)
            self.recall = float(hits.mean())
            if self.recall >= _TARGET_RECALL or self.probes >= lists:
                return
            self.probes = min(lists, 2 * self.probes)

    def write(self, folder: Path) -> None:
        """Keep the index in a folder; it is valid when its description is there, which comes last."""
        with atomic_write(folder / "lists.faiss") as draft:
            search_package("faiss").write_index(self.engine, str(draft))
            digest, checksum = _digest(draft), file_checksum(draft)
        about = {"digest": digest, "probes": self.probes, "recall": self.recall, "file": checksum}
        write_json(folder / "lists.json", about)

    @classmethod
    def read(cls, folder: Path) -> ApproximateIndex | None:
        """Return the index of a folder, lists mapped if they can be; anything missing or damaged counts as absent."""
        try:
            about = read_json(folder / "lists.json")
            if _digest(folder / "lists.faiss") != about["digest"]:
                return None
            faiss = search_package("faiss")
            engine = faiss.read_index(str(folder / "lists.faiss"), faiss.IO_FLAG_MMAP)
            index = cls(engine, about["probes"], about["recall"])
            if not index.is_packed:
                # By default threads are started in every search to read lists ahead: more work than the search itself.
                faiss.downcast_InvertedLists(engine.invlists).prefetch_nthread = 0
            return index
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):
            return None


def list_form(shape: tuple[int, ...]) -> ListForm:
    """Return what lists hold of so many vectors of so many numbers."""
    n_bytes = 4 * shape[0] * shape[1]
    if n_bytes <= LARGEST_FLAT:
        return "vectors"
    return "packed" if n_bytes <= LARGEST_PACKED and shape[1] % 2 == 0 else "bytes"


def list_count(n_rows: int) -> int:
    """Return among how many lists so many rows are split."""
    return max(1, min(int(4 * n_rows**0.5), n_rows // ROWS_PER_LIST))


def damage_of_index(folder: Path, *, all_bytes: bool = True) -> dict[str, str]:
    """Return what is wrong with the files of the index of a folder, by name."""
    if not (folder / "lists.json").exists():
        return {"lists.json": "is missing"} if (folder / "lists.faiss").exists() else {}
    if (wrong := damage_of_note(folder / "lists.json")) is not None:
        return {"lists.json": wrong}
    known = read_json(folder / "lists.json").get("file", [])
    wrong = damage_of(folder / "lists.faiss", known, all_bytes=all_bytes) if known else None
    return {} if wrong is None else {"lists.faiss": wrong}


def stored_recall(folder: Path) -> float | None:
    """Return the recall that the index of a folder had when it was built, None where there is none."""
    try:
        return float(read_json(folder / "lists.json")["recall"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _digest(path: Path) -> str:
    """Return a digest of the length, the beginning and the end: reading all of a large file would delay each start."""
    with path.open("rb") as stream:
        digest = hashlib.sha256(stream.read(_DIGESTED))
        length = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, length - _DIGESTED))
        digest.update(stream.read() + str(length).encode())
    return digest.hexdigest()
