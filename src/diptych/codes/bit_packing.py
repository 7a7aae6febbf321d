"""Hash codes as rows of bytes: packed from real numbers, unpacked, checked on entry and read as wider integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, BoolArray, FloatArray, row_blocks
from diptych.errors import InvalidInputError

_BLOCK_ROWS = 1 << 16


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
