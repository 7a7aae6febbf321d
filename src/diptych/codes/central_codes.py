"""A few codes that stand for many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diptych.codes.nearest import nearest_codes
from diptych.codes.packing import pack_signs, unpack_signs


def central_codes(
    codes: NDArray[np.uint8], number: int, *, rounds: int, rng: np.random.Generator, threads: int = 1
) -> NDArray[np.uint8]:
    """Return ``number`` codes such that each of ``codes`` is near one of them: k-means with bits.

    A code belongs to the nearest centre, and each bit of a centre is what most of its codes have there; a bit in
    balance becomes 1. A centre that no code is nearest to stays where it was. Grana et al., "A fast approach for
    integrating ORB descriptors in the bag of words model", SPIE 2013.

    >>> import numpy as np
    >>> from diptych.codes.central_codes import central_codes
    >>> codes = np.array([[0b00000000], [0b00000001], [0b00000010], [0b11110000], [0b11110001]], dtype=np.uint8)
    >>> np.sort(central_codes(codes, 2, rounds=3, rng=np.random.default_rng(0)), axis=0).tolist()
    [[0], [241]]
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
