"""Which rows show the same picture."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, IntArray


def picture_numbers(images: FloatArray) -> IntArray:
    """Return the number of each row's picture, from 0 in the order they first appear; equal rows are one picture.

    A picture with several texts stands in several rows, and none of its texts is a wrong answer to it.

    >>> import numpy as np
    >>> from diptych.models.pictures import picture_numbers
    >>> picture_numbers(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    array([0, 1, 0])
    """
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in images], dtype=np.intp)
