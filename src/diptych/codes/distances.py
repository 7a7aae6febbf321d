"""Hash codes as rows of bytes: packing, Hamming distances and asymmetric scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, BoolArray, FloatArray, as_matrix, row_blocks
from diptych.errors import InvalidInputError

# Codes are unpacked and compared so many at a time: what is worked on stays in the processor's cache.
BLOCK_CODES = 1 << 13


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
    for rows in row_blocks(len(codes), BLOCK_CODES):
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


def hamming_distances(queries: AnyArray, gallery: AnyArray) -> NDArray[Any]:
    """Return the (queries, gallery) matrix of the numbers of differing bits, ``uint8`` up to 255 bits, else ``uint16``.

    Bits are counted in words of up to 64. The whole matrix is returned: for a large gallery use ``nearest_codes``,
    which keeps none of it.

    >>> import numpy as np
    >>> from diptych.codes import hamming_distances
    >>> hamming_distances(np.array([[0b1100]], dtype=np.uint8), np.array([[0b1100], [0b0111]], dtype=np.uint8))
    array([[0, 3]], dtype=uint8)
    """
    queries = as_codes(queries, name="queries")
    gallery = as_codes(gallery, name="gallery", width=queries.shape[1])
    query_words, gallery_words = as_machine_words(queries), as_machine_words(gallery)
    distances = np.zeros((len(queries), len(gallery)), dtype=distance_type(queries.shape[1]))
    for rows in row_blocks(len(gallery), BLOCK_CODES):
        for query, code in enumerate(query_words):
            for word, bits in enumerate(code):
                distances[query, rows] += np.bitwise_count(gallery_words[rows, word] ^ bits)
    return distances


def asymmetric_scores(decisions: FloatArray, codes: AnyArray) -> NDArray[np.float32]:
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
    for rows in row_blocks(len(codes), BLOCK_CODES):
        np.matmul(decisions, unpack_signs(codes[rows], n_bits).T, out=scores[:, rows])
    return scores
