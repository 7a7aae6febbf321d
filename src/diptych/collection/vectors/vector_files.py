"""Points searched by faiss, in memory or in mapped files: all are compared, or inverted lists above 100,000."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.atomic_files import damage_of, damage_of_note, file_checksum, make_durable, read_json, write_json
from diptych.collection.packages import search_package
from diptych.collection.retriever_protocol import PointKind
from diptych.collection.store.scoring import Scoring
from diptych.collection.vectors.neighbours import PointBlock, allowed_rows

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
CHECKED_BYTES = 64 << 20
"""Larger files are not read whole when they are opened: a changed byte of inverted lists can hide a point at most."""
INDEX = "index.faiss"
ROWS = "rows.npy"
NOTE = "made.json"
DRAFT = ".points-"
_FOLDER = re.compile(r"points-(\d+)-(image|text|region)-(\d+)")


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
        options: dict[str, Any] = {}
        share = 1.0
        if allowed is not None:
            chosen = allowed_rows(allowed, self.contents)
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
        # faiss divides the work by queries: for a single one, a second thread would only be waited for.
        faiss.omp_set_num_threads(min(len(queries), os.cpu_count() or 1) or 1)
        distances, places = self.engine.search(np.ascontiguousarray(queries), min(k, len(self)), params=params)
        is_known = (places >= 0) & (places < len(self))
        return distances, np.where(is_known, self.ids[np.where(is_known, places, 0)], -1)


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
    """Return inverted lists of 8-bit numbers over the points of all blocks, tuned on queries to a recall."""
    faiss = search_package("faiss")
    engine = faiss.index_factory(training.shape[1], f"IVF{list_count(n_rows)},SQ8", _metric(scoring))
    engine.cp.niter = TRAINING_ROUNDS
    engine.train(training.astype(np.float32))
    truth = _Truth(queries, scoring)
    masked = _Truth(queries, scoring)
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


class _Truth:
    """The nearest points of some queries, found while all points pass by."""

    def __init__(self, queries: AnyArray, scoring: Scoring) -> None:
        self._queries = np.ascontiguousarray(queries, dtype=np.float32)
        self._metric = _metric(scoring)
        self._sign = 1 if scoring.metric == "l2" else -1
        self._distances = np.zeros((len(queries), 0), dtype=np.float32)
        self._ids = np.zeros((len(queries), 0), dtype=np.int64)

    def add(self, vectors: FloatArray, ids: IntArray) -> None:
        """Compare more points."""
        if not len(ids):
            return
        found, places = search_package("faiss").knn(
            self._queries, vectors, min(NEIGHBOURS, len(ids)), metric=self._metric
        )
        distances, numbers = np.hstack([self._distances, found]), np.hstack([self._ids, ids[places]])
        order = np.argsort(self._sign * distances, axis=1, kind="stable")[:, :NEIGHBOURS]
        self._distances = np.take_along_axis(distances, order, axis=1)
        self._ids = np.take_along_axis(numbers, order, axis=1)

    def recall(self, part: VectorPart, allowed: BoolArray | None) -> float:
        """Return the share of the nearest points that a part finds, among three times as many."""
        _, found = part.search(self._queries, 3 * NEIGHBOURS, allowed)
        return float((self._ids[:, :, None] == found[:, None, :]).any(axis=2).mean())


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
            # Nobody reads what is left of a folder whose removal was interrupted.
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
