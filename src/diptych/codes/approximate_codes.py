"""Sub-linear search of codes: inverted lists, tuned to the recall they are meant to have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.codes.faiss_search import faiss_package, faiss_threads
from diptych.codes.nearest import Found, nearest_codes
from diptych.errors import InvalidInputError

_NEIGHBOURS = 10
_SAMPLE_QUERIES = 256
_TRAINING_ROWS_PER_LIST = 40
_TRAINING_ROUNDS = 5
_MOST_LISTS = 1 << 12
_ALONE = 8


class ApproximateCodes:
    """An inverted-file index over a fixed set of codes.

    The codes are split among about √n lists by the nearest of as many central codes, and a query looks into the nearest
    lists only. How many is not guessed: sample queries are answered exactly as well, and lists are added until
    ``target`` of the ten nearest are found. ``recall`` is what was then measured with *other* sample queries: the share
    of answers that are as near as the true tenth.

    Among the sub-linear structures for codes, inverted lists kept the most recall per time: on a million clustered
    64-bit codes multi-index hashing (Norouzi et al., "Fast search in Hamming space with multi-index hashing", CVPR
    2012) took several times as long for the same recall. Needs faiss: ``pip install 'diptych[search]'``.
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
        with faiss_threads(threads):
            index = cls(_filled_lists(codes, rng), 0.0)
        own = queries is None or not len(queries)
        asked = codes if own else np.asarray(queries)
        asked = asked[rng.permutation(len(asked))[: 2 * _SAMPLE_QUERIES]]
        # A row finds itself at once, so the first answer of a row proves nothing.
        first = 1 if own and len(codes) > 1 else 0
        index._tune(asked[::2], codes, first, target, threads)
        index.recall = index._measured(asked[1::2] if len(asked) > 1 else asked, codes, first, threads)
        return index

    def search(self, queries: NDArray[np.uint8], k: int, *, threads: int = 1) -> Found:
        """Return distances and positions of the ``k`` nearest found; position −1 where there are fewer."""
        # Threads that wait for each other cost more than a few queries.
        with faiss_threads(threads if len(queries) >= _ALONE else 1):
            distances, positions = self.engine.search(queries, k)
        order = np.lexsort((positions, distances), axis=1)
        return np.take_along_axis(distances, order, axis=1), np.take_along_axis(positions, order, axis=1)

    def _tune(
        self, queries: NDArray[np.uint8], codes: NDArray[np.uint8], first: int, target: float, threads: int
    ) -> None:
        while self._measured(queries, codes, first, threads) < target and self.probes < self.engine.nlist:
            self.engine.nprobe = min(self.engine.nlist, 2 * self.probes)

    def _measured(self, queries: NDArray[np.uint8], codes: NDArray[np.uint8], first: int, threads: int) -> float:
        truth, _ = nearest_codes(queries, codes, _NEIGHBOURS + first, threads=threads)
        found, positions = self.search(queries, truth.shape[1], threads=threads)
        hits = (positions >= 0) & (found <= truth[:, -1:])
        return float(hits[:, first:].mean())


def _filled_lists(codes: NDArray[np.uint8], rng: np.random.Generator) -> Any:
    faiss = faiss_package()
    lists = max(1, min(int(len(codes) ** 0.5), len(codes) // _TRAINING_ROWS_PER_LIST, _MOST_LISTS))
    centres = faiss.IndexBinaryFlat(8 * codes.shape[1])
    engine = faiss.IndexBinaryIVF(centres, 8 * codes.shape[1], lists)
    engine.cp.niter = _TRAINING_ROUNDS
    sample = rng.permutation(len(codes))[: _TRAINING_ROWS_PER_LIST * lists]
    engine.train(codes[np.sort(sample)])
    engine.add(codes)
    return engine
