"""Codebooks: k-means centres, and which of them is nearest."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.estimators import scikit_learn

_KMEANS_BATCH = 4096
_KMEANS_PASSES = 20
_KMEANS_PLUS_PLUS_SAMPLE = 64


def learn_centres(vectors: FloatArray, n_centres: int, *, seed: int = 0) -> FloatArray:
    """Return k-means centres of the rows, by mini-batches (Sculley, WWW 2010); few rows are themselves the centres."""
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if len(vectors) <= n_centres:
        return vectors
    clusters = scikit_learn("sklearn.cluster").MiniBatchKMeans(
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
    """Return the number of the centre nearest to each row, the first of equals."""
    if not len(vectors):
        return np.zeros(0, dtype=np.int64)
    return np.asarray(scikit_learn("sklearn.metrics").pairwise_distances_argmin(vectors, centres))
