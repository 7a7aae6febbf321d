"""Real numbers to bits and bits to signs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray, row_blocks
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
