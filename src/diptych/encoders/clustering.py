"""Codebooks: k-means centres, and which of them is nearest."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, IntArray, row_blocks

_KMEANS_BATCH = 4096
_KMEANS_PASSES = 20
_KMEANS_PLUS_PLUS_SAMPLE = 64
_DISTANCE_BLOCK_ENTRIES = 4_000_000


def learn_centres(vectors: FloatArray, n_centres: int, *, seed: int = 0) -> FloatArray:
    """Return k-means centres of the rows, by mini-batches (Sculley, WWW 2010); few rows are themselves the centres."""
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if len(vectors) <= n_centres:
        return vectors
    from sklearn.cluster import MiniBatchKMeans

    clusters = MiniBatchKMeans(
        n_centres,
        # The careful start takes longer than all the rest when there are many centres, and matters little then.
        init="k-means++" if n_centres <= _KMEANS_PLUS_PLUS_SAMPLE else "random",
        batch_size=max(_KMEANS_BATCH, n_centres),
        max_iter=_KMEANS_PASSES,
        n_init=1,
        random_state=seed,
    )
    return np.asarray(clusters.fit(vectors).cluster_centers_, dtype=np.float32)


def nearest_centres(vectors: FloatArray, centres: FloatArray) -> IntArray:
    """Return the number of the centre nearest to each row, the first of equals; never all distances at once."""
    nearest = np.empty(len(vectors), dtype=np.int64)
    half_squares = np.einsum("ij,ij->i", centres, centres, dtype=np.float64).astype(centres.dtype) / 2
    for rows in row_blocks(len(vectors), _DISTANCE_BLOCK_ENTRIES // max(1, len(centres))):
        # ‖x − c‖² without ‖x‖², which all centres share.
        nearest[rows] = (half_squares - vectors[rows] @ centres.T).argmin(axis=1)
    return nearest
