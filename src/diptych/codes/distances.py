"""Codes against codes, and real numbers against codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray, as_matrix, row_blocks
from diptych.codes.parallel import in_parallel, thread_count
from diptych.codes.words import as_codes, as_words, distance_type
from diptych.errors import InvalidInputError

CHUNK = 1 << 16
_UNPACKED_ROWS = 1 << 13


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
    query_words, gallery_words = as_words(queries), as_words(gallery)
    distances = np.empty((len(queries), len(gallery)), dtype=distance_type(queries.shape[1]))

    def fill(rows: slice) -> None:
        scratch = np.empty(rows.stop - rows.start, dtype=gallery_words.dtype)
        for query, words in enumerate(query_words):
            fill_distances(words, gallery_words[rows], distances[query, rows], scratch)

    in_parallel(fill, list(row_blocks(len(gallery), CHUNK)), thread_count(threads))
    return distances


def fill_distances(query: NDArray[Any], gallery: NDArray[Any], distances: NDArray[Any], scratch: NDArray[Any]) -> None:
    """Write the distances of one query, a row of words, to each row of words of the gallery."""
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
