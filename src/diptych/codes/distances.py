"""Hash codes as rows of bytes: packing, Hamming distances and asymmetric scores on a few threads, statistics."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_matrix, row_blocks
from diptych.errors import InvalidInputError

# Sums of this many ±1 are whole numbers that float32 holds exactly.
_BLOCK_ROWS = 1 << 16
CHUNK = 1 << 16
_UNPACKED_ROWS = 1 << 13


def pack_signs(decisions: FloatArray) -> NDArray[np.uint8]:
    """Return one bit per number, 1 where it is at least zero, packed into rows of bytes.

    An exact zero is a 1, so that codes have two symbols and never three. The last byte is padded with zero bits, which
    no Hamming distance sees.

    >>> import numpy as np
    >>> from diptych.codes import pack_signs
    >>> pack_signs(np.array([[0.5, -1.0, 0.0]]))
    array([[160]], dtype=uint8)
    """
    return np.packbits(np.asarray(decisions) >= 0, axis=1)


def unpack_signs(codes: AnyArray, n_bits: int) -> NDArray[np.float32]:
    """Return the codes as −1 and +1, one column per bit.

    >>> import numpy as np
    >>> from diptych.codes import unpack_signs
    >>> unpack_signs(np.array([[160]], dtype=np.uint8), 3)
    array([[ 1., -1.,  1.]], dtype=float32)
    """
    codes = np.asarray(codes)
    if codes.dtype != np.uint8 or codes.ndim != 2:
        raise InvalidInputError(f"codes are a matrix of packed uint8, got {codes.dtype} of {codes.ndim} dimensions")
    if not 0 < n_bits <= 8 * codes.shape[1]:
        raise InvalidInputError(f"codes of {codes.shape[1]} bytes hold 1 to {8 * codes.shape[1]} bits, not {n_bits}")
    signs = np.empty((len(codes), n_bits), dtype=np.float32)
    for rows in row_blocks(len(codes), _BLOCK_ROWS):
        signs[rows] = np.unpackbits(codes[rows], axis=1, count=n_bits)
    signs *= 2
    signs -= 1
    return signs


def as_codes(codes: AnyArray, *, name: str = "codes", width: int | None = None) -> NDArray[np.uint8]:
    """Return ``codes`` as contiguous rows of packed bytes, ``width`` of them where given, or explain what is wrong."""
    codes = np.asarray(codes)
    if codes.dtype != np.uint8:
        raise InvalidInputError(f"{name} must be packed uint8 codes (pack_signs), got {codes.dtype}")
    if codes.ndim != 2 or codes.shape[1] == 0:
        raise InvalidInputError(f"{name} must be a matrix, one code per row, got shape {codes.shape}")
    if width is not None and codes.shape[1] != width:
        raise InvalidInputError(f"codes of one space have one width, got {codes.shape[1]} bytes in {name}, not {width}")
    return np.ascontiguousarray(codes)


def as_allowed_mask(allowed: BoolArray, n_items: int) -> BoolArray:
    """Return ``allowed`` as one truth value per code, or explain what is wrong with it."""
    marks = np.asarray(allowed)
    if marks.dtype != bool or marks.shape != (n_items,):
        raise InvalidInputError(
            f"allowed must hold one truth value per code, {n_items} in all, got {marks.dtype} of shape {marks.shape}"
        )
    return marks


def as_machine_words(codes: AnyArray) -> NDArray[Any]:
    """View rows of bytes as rows of the widest integers, padded with zero bits where their width asks for it."""
    width = codes.shape[1]
    word = next((size for size in (1, 2, 4) if width <= size), 8)
    padded = -(-width // word) * word
    if padded != width:
        codes = np.pad(codes, ((0, 0), (0, padded - width)))
    return np.ascontiguousarray(codes).view(f"u{word}")


def distance_type(width: int) -> type[np.uint8] | type[np.uint16]:
    """Return the smallest integer type that holds a distance of codes of ``width`` bytes."""
    return np.uint8 if 8 * width <= np.iinfo(np.uint8).max else np.uint16


_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def thread_count(threads: int | None) -> int:
    """Return how many threads to use: those asked for, or one for each processor this process may run on."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise InvalidInputError(f"threads must be at least 1, got {threads}; None uses every processor")
    return threads


def in_parallel(work: Callable[[_Task], _Result], tasks: Sequence[_Task], threads: int) -> list[_Result]:
    """Return ``work`` of every task, in order.

    The calling thread works too and takes whatever is left, so that on a busy machine nothing waits for a helper that
    has not been given a processor yet.
    """
    helpers = min(threads, len(tasks)) - 1
    if helpers < 1:
        return [work(task) for task in tasks]
    results: dict[int, _Result] = {}
    left: SimpleQueue[int] = SimpleQueue()
    for number in range(len(tasks)):
        left.put(number)

    def take_what_is_left() -> None:
        with suppress(Empty):
            while True:
                number = left.get_nowait()
                results[number] = work(tasks[number])

    waiting = [_thread_pool(threads).submit(take_what_is_left) for _ in range(helpers)]
    take_what_is_left()
    for helper in waiting:
        if not helper.cancel():
            helper.result()
    return [results[number] for number in range(len(tasks))]


@lru_cache(maxsize=8)
def _thread_pool(threads: int) -> ThreadPoolExecutor:
    # Starting threads takes as long as searching a hundred thousand codes, so they are kept.
    return ThreadPoolExecutor(threads, thread_name_prefix="diptych-codes")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool but none of its threads.
    os.register_at_fork(after_in_child=_thread_pool.cache_clear)


def hamming_distances(queries: AnyArray, gallery: AnyArray, *, threads: int | None = None) -> NDArray[Any]:
    """Return the (queries, gallery) matrix of the numbers of differing bits, ``uint8`` up to 255 bits, else ``uint16``.

    Bits are counted in words of 64. The whole matrix is returned: for a large gallery use ``nearest_codes``, which
    keeps none of it.

    >>> import numpy as np
    >>> from diptych.codes import hamming_distances
    >>> hamming_distances(np.array([[0b1100]], dtype=np.uint8), np.array([[0b1100], [0b0111]], dtype=np.uint8))
    array([[0, 3]], dtype=uint8)
    """
    queries = as_codes(queries, name="queries")
    gallery = as_codes(gallery, name="gallery", width=queries.shape[1])
    query_words, gallery_words = as_machine_words(queries), as_machine_words(gallery)
    distances = np.empty((len(queries), len(gallery)), dtype=distance_type(queries.shape[1]))

    def fill(rows: slice) -> None:
        scratch = np.empty(rows.stop - rows.start, dtype=gallery_words.dtype)
        for query, words in enumerate(query_words):
            fill_distances(words, gallery_words[rows], distances[query, rows], scratch)

    in_parallel(fill, list(row_blocks(len(gallery), CHUNK)), thread_count(threads))
    return distances


def fill_distances(query: NDArray[Any], gallery: NDArray[Any], distances: NDArray[Any], scratch: NDArray[Any]) -> None:
    """Write the distances of one query, a row of words, to each row of words of the gallery."""
    if gallery.dtype == np.uint16:
        # NumPy counts the bits of bytes several times as fast as those of wider words; the two of a code are added.
        np.bitwise_xor(gallery[:, 0], query[0], out=scratch)
        counts = np.bitwise_count(scratch.view(np.uint8)).view(np.uint16)
        counts += np.right_shift(counts, 8, out=scratch)
        # The lower byte, which is all that fits.
        np.copyto(distances, counts, casting="unsafe")
        return
    for word, value in enumerate(query):
        np.bitwise_xor(gallery[:, word], value, out=scratch)
        if word == 0:
            np.bitwise_count(scratch, out=distances)
        else:
            distances += np.bitwise_count(scratch)


def asymmetric_scores(decisions: FloatArray, codes: AnyArray, *, threads: int | None = None) -> NDArray[np.float32]:
    """Return the (queries, items) matrix Σₖ dₖ·bₖ of real numbers dₖ before the sign and bits bₖ = ±1.

    Larger is better. The query keeps what its own sign would throw away, the item stays a code (Gordo et al.,
    "Asymmetric distances for binary embeddings", TPAMI 2014). With dₖ = ±1 it is n_bits − 2·(Hamming distance).

    >>> import numpy as np
    >>> from diptych.codes import asymmetric_scores, pack_signs
    >>> asymmetric_scores(np.array([[0.5, -2.0]]), pack_signs(np.array([[1, 1], [1, -1]])))
    array([[-1.5,  2.5]], dtype=float32)
    """
    codes = as_codes(codes)
    decisions = as_matrix(decisions, name="decisions").astype(np.float32, copy=False)
    n_bits = decisions.shape[1]
    if -(-n_bits // 8) != codes.shape[1]:
        raise InvalidInputError(f"decisions of {n_bits} bits do not belong to codes of {codes.shape[1]} bytes")
    scores = np.empty((len(decisions), len(codes)), dtype=np.float32)
    # With bits 0 and 1 in place of −1 and +1 the product is (score + Σ d) / 2, and two passes over the bits are saved.
    doubled, sums = 2 * decisions, decisions.sum(axis=1, keepdims=True)

    def fill(rows: slice) -> None:
        bits = np.unpackbits(codes[rows], axis=1, count=n_bits).astype(np.float32)
        np.subtract(doubled @ bits.T, sums, out=scores[:, rows])

    in_parallel(fill, list(row_blocks(len(codes), _UNPACKED_ROWS)), thread_count(threads))
    return scores


def count_small(values: NDArray[Any], n_values: int) -> IntArray:
    """Return the histogram of ``values`` in 0 … ``n_values`` − 1.

    Bytes are counted in pairs: one count per 16-bit word halves the work, and its two bytes are folded afterwards.
    """
    if values.dtype != np.uint8 or len(values) < CHUNK or not values.flags.c_contiguous:
        return np.bincount(values, minlength=n_values)
    even = len(values) // 2 * 2
    pairs = np.zeros(1 << 16, dtype=np.int64)
    words = values[:even].view(np.uint16)
    for start in range(0, len(words), CHUNK):
        counts = np.bincount(words[start : start + CHUNK])
        pairs[: len(counts)] += counts
    table = pairs.reshape(256, 256)
    folded = table.sum(axis=0) + table.sum(axis=1) + np.bincount(values[even:], minlength=256)
    return cast(IntArray, folded[:n_values])


def smallest(values: NDArray[Any], k: int) -> IntArray:
    """Return the positions of the ``k`` smallest of ``values``, ascending, equal ones in their order.

    A histogram says below which value everything belongs to the answer and how many equal to it do; nothing but the
    answer is sorted.
    """
    if k >= len(values):
        return np.argsort(values, kind="stable")
    up_to = np.cumsum(count_small(values, int(values.max()) + 1))
    last = int(np.searchsorted(up_to, k))
    inside = np.flatnonzero(values <= last)
    # The answer's own order is by value then position, and what is beyond k are the last equal ones.
    return cast(IntArray, inside[np.argsort(values[inside], kind="stable")[:k]])


@dataclass(frozen=True)
class CodeStatistics:
    """Whether codes use their bits.

    ``distinct``
        number of different codes, and ``largest_group`` the number of items that share the commonest one.
    ``bit_balance``
        mean share of ones; ``worst_balance`` is the largest distance of one bit's share from ½ (0: balanced, ½: a bit
        that never changes, of which there are ``constant_bits``).
    ``mean_abs_correlation``
        mean |Pearson correlation| of two different bits that change, 0 when there are fewer than two such bits.
    ``bit_entropy``
        mean entropy of a bit, at most 1.
    ``code_entropy``
        entropy in bits of the distribution of whole codes, at most log₂ of the number of items.
    ``bytes_per_item``
        what a packed code occupies.

    Balanced and uncorrelated bits are what Weiss et al. ("Spectral hashing", NIPS 2008) ask of good codes.
    """

    n_items: int
    n_bits: int
    distinct: int
    largest_group: int
    bit_balance: float
    worst_balance: float
    constant_bits: int
    mean_abs_correlation: float
    bit_entropy: float
    code_entropy: float
    bytes_per_item: int


def code_statistics(codes: AnyArray, n_bits: int) -> CodeStatistics:
    """Describe packed codes of ``n_bits`` bits.

    >>> import numpy as np
    >>> from diptych.codes import code_statistics
    >>> found = code_statistics(np.array([[0b11000000], [0b00000000], [0b11000000], [0b00000000]], dtype=np.uint8), 2)
    >>> found.distinct, found.bit_balance, found.mean_abs_correlation, found.code_entropy
    (2, 0.5, 1.0, 1.0)
    """
    codes = as_codes(codes)
    if not len(codes):
        raise InvalidInputError("there are no codes to describe")
    if -(-n_bits // 8) != codes.shape[1]:
        raise InvalidInputError(f"codes of {n_bits} bits have {-(-n_bits // 8)} bytes, not {codes.shape[1]}")
    sums, products = _moments(codes, n_bits)
    shares = (1 + sums / len(codes)) / 2
    groups = _group_sizes(codes)
    return CodeStatistics(
        n_items=len(codes),
        n_bits=n_bits,
        distinct=len(groups),
        largest_group=int(groups.max()),
        bit_balance=float(shares.mean()),
        worst_balance=float(np.abs(shares - 0.5).max()),
        constant_bits=int(np.count_nonzero((shares == 0) | (shares == 1))),
        mean_abs_correlation=_mean_correlation(sums, products, len(codes)),
        bit_entropy=float((_information(shares) + _information(1 - shares)).mean()),
        code_entropy=float(_information(groups / len(codes)).sum()),
        bytes_per_item=codes.shape[1],
    )


def _moments(codes: NDArray[np.uint8], n_bits: int) -> tuple[FloatArray, FloatArray]:
    """Return the sums of the bits as ±1 and of their products."""
    sums, products = np.zeros(n_bits), np.zeros((n_bits, n_bits))
    for rows in row_blocks(len(codes), _BLOCK_ROWS):
        signs = unpack_signs(codes[rows], n_bits)
        sums += signs.sum(axis=0)
        products += signs.T @ signs
    return sums, products


def _mean_correlation(sums: FloatArray, products: FloatArray, n_items: int) -> float:
    # n²·covariance in whole numbers, so that a constant bit is exactly zero.
    covariances = n_items * products - np.outer(sums, sums)
    changing = np.flatnonzero(np.diagonal(covariances) > 0)
    if len(changing) < 2:
        return 0.0
    deviations = np.sqrt(np.diagonal(covariances)[changing])
    correlations = np.abs(covariances[np.ix_(changing, changing)]) / np.outer(deviations, deviations)
    pairs = np.triu_indices(len(changing), k=1)
    return float(correlations[pairs].mean())


def _information(shares: FloatArray) -> FloatArray:
    return np.asarray(-shares * np.log2(np.where(shares > 0, shares, 1.0)))


def _group_sizes(codes: NDArray[np.uint8]) -> IntArray:
    words: NDArray[Any] = as_machine_words(codes)
    if words.shape[1] == 1:
        return np.unique(words[:, 0], return_counts=True)[1]
    return np.unique(words, axis=0, return_counts=True)[1]
