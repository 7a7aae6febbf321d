"""What codes of a length cost: bytes, and time to search them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from diptych.codes import nearest_codes

_QUERIES = 64
_NEAREST = 10
_REPEATS = 3


@dataclass(frozen=True)
class CodeStorage:
    """Storage of codes of ``n_bits``, and exact searches for the ten nearest of ``n_items`` random codes in a second.

    >>> from diptych.benchmark.hashing import CodeStorage
    >>> CodeStorage(n_bits=64, n_items=1_000_000, queries_per_second=1000.0).megabytes_per_million
    8.0
    """

    n_bits: int
    n_items: int
    queries_per_second: float

    @property
    def bytes_per_item(self) -> int:
        """Whole bytes of a packed code."""
        return -(-self.n_bits // 8)

    @property
    def megabytes_per_million(self) -> float:
        """Megabytes (10⁶ bytes) that a million items take."""
        return float(self.bytes_per_item)


def measure_storage(n_bits: int, n_items: int = 1_000_000, seed: int = 0) -> CodeStorage:
    """Time exact search among ``n_items`` random codes; the best of three batches of 64 queries counts.

    >>> from diptych.benchmark.hashing import measure_storage
    >>> measure_storage(12, n_items=1000).bytes_per_item
    2
    """
    rng = np.random.default_rng(seed)
    width = -(-n_bits // 8)
    gallery = rng.integers(0, 256, size=(n_items, width), dtype=np.uint8)
    queries = rng.integers(0, 256, size=(_QUERIES, width), dtype=np.uint8)
    # Bits beyond the length are zero in every code, as they are when signs are packed.
    padding = np.uint8(0xFF << (8 * width - n_bits) & 0xFF)
    gallery[:, -1] &= padding
    queries[:, -1] &= padding
    seconds = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        nearest_codes(queries, gallery, min(_NEAREST, n_items))
        seconds.append(time.perf_counter() - start)
    return CodeStorage(n_bits, n_items, _QUERIES / min(seconds))
