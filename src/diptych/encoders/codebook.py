"""Vector quantisation: k-means centres, and the centre nearest to a vector."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from diptych.arrays import FloatArray, IntArray, row_blocks

_BATCH = 4096
_PASSES = 20
_CAREFUL_START = 64
_BLOCK_ENTRIES = 4_000_000


def learn_centres(vectors: FloatArray, n_centres: int, *, seed: int = 0) -> FloatArray:
    """Return k-means centres of the rows, by mini-batches (Sculley, "Web-scale k-means clustering", WWW 2010).

    With no more rows than centres, the rows themselves are the centres.

    >>> import numpy as np
    >>> from diptych.encoders.codebook import learn_centres
    >>> points = np.repeat(np.array([[0.0, 0.0], [8.0, 8.0]], dtype=np.float32), 50, axis=0)
    >>> np.sort(learn_centres(points, 2), axis=0).round(3).tolist()
    [[0.0, 0.0], [8.0, 8.0]]
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if len(vectors) <= n_centres:
        return vectors
    clusters = MiniBatchKMeans(
        n_centres,
        # The careful start takes longer than all the rest when there are many centres, and matters little then.
        init="k-means++" if n_centres <= _CAREFUL_START else "random",
        batch_size=max(_BATCH, n_centres),
        max_iter=_PASSES,
        n_init=1,
        random_state=seed,
    )
    return np.asarray(clusters.fit(vectors).cluster_centers_, dtype=np.float32)


def nearest_centres(vectors: FloatArray, centres: FloatArray) -> IntArray:
    """Return the number of the centre nearest to each row, the first of equals; never all distances at once.

    >>> import numpy as np
    >>> from diptych.encoders.codebook import nearest_centres
    >>> nearest_centres(np.array([[1.0], [6.0], [9.0]]), np.array([[0.0], [10.0]])).tolist()
    [0, 1, 1]
    """
    nearest = np.empty(len(vectors), dtype=np.int64)
    half_squares = np.einsum("ij,ij->i", centres, centres, dtype=np.float64).astype(centres.dtype) / 2
    for rows in row_blocks(len(vectors), _BLOCK_ENTRIES // max(1, len(centres))):
        # ‖x − c‖² without ‖x‖², which all centres share.
        nearest[rows] = (half_squares - vectors[rows] @ centres.T).argmin(axis=1)
    return nearest
