"""Sub-linear search of codes: inverted lists, tuned to the recall they are meant to have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import row_blocks
from diptych.codes.bit_packing import pack_signs, unpack_signs
from diptych.codes.distances import in_parallel
from diptych.codes.nearest import DistancesAndPositions, faiss_package, faiss_threads, nearest_codes
from diptych.errors import InvalidInputError

_NEIGHBOURS = 10
_SAMPLE_QUERIES = 256
_TRAINING_ROWS_PER_LIST = 40
_TRAINING_ROUNDS = 5
_MOST_LISTS = 1 << 12
_ADDED_ROWS = 1 << 18
_FEW_QUERIES = 8


def central_codes(
    codes: NDArray[np.uint8], number: int, *, rounds: int, rng: np.random.Generator, threads: int = 1
) -> NDArray[np.uint8]:
    """Return ``number`` codes such that each of ``codes`` is near one of them: k-means with bits.

    A code belongs to the nearest centre, and each bit of a centre is what most of its codes have there; a bit in
    balance becomes 1. A centre that no code is nearest to stays where it was. Grana et al., "A fast approach for
    integrating ORB descriptors in the bag of words model", SPIE 2013.
    """
    centres = codes[np.sort(rng.permutation(len(codes))[:number])]
    signs = unpack_signs(codes, 8 * codes.shape[1])
    for _ in range(rounds):
        nearest = nearest_codes(codes, centres, 1, threads=threads)[1][:, 0]
        order = np.argsort(nearest, kind="stable")
        used, starts = np.unique(nearest[order], return_index=True)
        majority = np.add.reduceat(signs[order], starts, axis=0)
        centres = centres.copy()
        centres[used] = pack_signs(majority)
    return centres


class ApproximateCodes:
    """An inverted-file index over a fixed set of codes, split among about √n lists by the nearest of central codes.

    A query looks into the nearest lists only. How many is not guessed: sample queries are answered exactly as well, and
    lists are added until ``target`` of the ten nearest are found. ``recall`` is what was then measured with *other*
    sample queries: the share of answers that are as near as the true tenth. Inverted lists took the least time for the
    same recall; multi-index hashing (Norouzi et al., CVPR 2012) took several times as long on a million 64-bit codes.
    """

    def __init__(self, engine: Any, recall: float) -> None:
        self.engine = engine
        self.recall = recall

    def __len__(self) -> int:
        return int(self.engine.ntotal)

    @property
    def probes(self) -> int:
        """How many lists a search looks into."""
        return int(self.engine.nprobe)

    @property
    def memory(self) -> int:
        """Bytes of the lists: every code once more, and its position."""
        return len(self) * (int(self.engine.code_size) + np.dtype(np.int64).itemsize)

    @classmethod
    def build(
        cls,
        codes: NDArray[np.uint8],
        queries: NDArray[np.uint8] | None = None,
        *,
        target: float = 0.98,
        threads: int = 1,
    ) -> ApproximateCodes:
        """Index the rows; ``queries`` are examples of what will be asked, by default some of the rows."""
        if not 0 < target <= 1:
            raise InvalidInputError(f"the recall to reach lies in (0, 1], got {target}")
        if not len(codes):
            raise InvalidInputError("there are no codes to index; add some first")
        rng = np.random.default_rng(0)
        index = cls(_filled_lists(codes, rng, threads), 0.0)
        own = queries is None or not len(queries)
        asked = codes if own else np.asarray(queries)
        asked = asked[rng.permutation(len(asked))[: 2 * _SAMPLE_QUERIES]]
        # A row finds itself at once, so the first answer of a row proves nothing.
        first = 1 if own and len(codes) > 1 else 0
        exact = nearest_codes(asked, codes, _NEIGHBOURS + first, threads=threads)[0]
        while (
            index._measured_recall(asked[::2], exact[::2], first, threads) < target
            and index.probes < index.engine.nlist
        ):
            index.engine.nprobe = min(index.engine.nlist, 2 * index.probes)
        others = slice(1, None, 2) if len(asked) > 1 else slice(None)
        index.recall = index._measured_recall(asked[others], exact[others], first, threads)
        return index

    def search(self, queries: NDArray[np.uint8], k: int, *, threads: int = 1) -> DistancesAndPositions:
        """Return distances and positions of the ``k`` nearest found; position −1 where there are fewer."""
        parts = list(row_blocks(len(queries), max(_FEW_QUERIES, -(-len(queries) // threads))))
        found = in_parallel(lambda rows: self._search_alone(queries[rows], k), parts, threads)
        distances = np.concatenate([near for near, _ in found])
        positions = np.concatenate([places for _, places in found])
        order = np.lexsort((positions, distances), axis=1)
        return np.take_along_axis(distances, order, axis=1), np.take_along_axis(positions, order, axis=1)

    def _search_alone(self, queries: NDArray[np.uint8], k: int) -> DistancesAndPositions:
        with faiss_threads(1):
            found: DistancesAndPositions = self.engine.search(queries, k)
        return found

    def _measured_recall(self, queries: NDArray[np.uint8], exact: NDArray[np.int32], first: int, threads: int) -> float:
        """Return the share of answers, from ``first`` on, that are as near as the farthest of the exact ones."""
        distances, positions = self.search(queries, exact.shape[1], threads=threads)
        hits = (positions >= 0) & (distances <= exact[:, -1:])
        return float(hits[:, first:].mean())


def _filled_lists(codes: NDArray[np.uint8], rng: np.random.Generator, threads: int) -> Any:
    """Build the engine's lists with centres and assignments of our own: its own training waits for its threads."""
    faiss = faiss_package()
    number = max(1, min(int(len(codes) ** 0.5), len(codes) // _TRAINING_ROWS_PER_LIST, _MOST_LISTS))
    sample = codes[np.sort(rng.permutation(len(codes))[: _TRAINING_ROWS_PER_LIST * number])]
    centres = faiss.IndexBinaryFlat(8 * codes.shape[1])
    centres.add(central_codes(sample, number, rounds=_TRAINING_ROUNDS, rng=rng, threads=threads))
    engine = faiss.IndexBinaryIVF(centres, 8 * codes.shape[1], number)
    engine.is_trained = True
    chosen = faiss.vector_to_array(centres.xb).reshape(number, -1)
    with faiss_threads(1):
        for rows in row_blocks(len(codes), _ADDED_ROWS):
            part = codes[rows]
            lists = np.ascontiguousarray(nearest_codes(part, chosen, 1, threads=threads)[1][:, 0])
            engine.add_core(len(part), faiss.swig_ptr(part), None, faiss.swig_ptr(lists))
    return engine
