"""The graph of nearest neighbours of one side."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from diptych.arrays import FloatArray, row_blocks

# Bytes of a block of distances.
_BLOCK_BYTES = 64 * 2**20


def neighbour_graph(rows: FloatArray, count: int) -> csr_array:
    """Return the symmetric (W + Wᵀ)/2 where W_ij is 1 for the ``count`` rows j nearest to row i, itself left out.

    Distances are Euclidean and exact, a block of rows against all at a time; only the edges are kept.
    """
    n_rows = len(rows)
    count = min(count, n_rows - 1)
    nearest = np.empty((n_rows, count), dtype=np.int64)
    squares = np.einsum("ij,ij->i", rows, rows)
    for block in row_blocks(n_rows, _BLOCK_BYTES // (rows.itemsize * n_rows)):
        # ‖x − y‖² less the part that is the same for all neighbours of one row.
        distances = squares - 2 * (rows[block] @ rows.T)
        places = np.arange(block.start, block.stop)
        distances[places - block.start, places] = np.inf
        nearest[block] = np.argpartition(distances, count - 1, axis=1)[:, :count]
    starts = np.repeat(np.arange(n_rows), count)
    half = coo_array((np.full(starts.size, 0.5), (starts, nearest.ravel())), shape=(n_rows, n_rows)).tocsr()
    return csr_array(half + half.T)
