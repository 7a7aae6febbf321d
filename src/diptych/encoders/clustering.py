"""What picture and text encoders learn from counted words, visual or written: k-means codebooks and topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

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


@dataclass(frozen=True)
class TopicModel:
    """Topics as distributions over words, and the inference of how much of each is in a document.

    A document is a mixture θ of K topics with prior θ ~ Dirichlet(1/K), a topic a distribution over words whose
    posterior is Dirichlet(λ_k). Learning and inference are the variational Bayes of Hoffman et al., "Online learning
    for latent Dirichlet allocation", NIPS 2010, as scikit-learn has it.
    """

    components: FloatArray  # λ, the (topics, words) weights; everything else follows from them

    @classmethod
    def learn(cls, counts: scipy.sparse.csr_matrix, n_topics: int, *, max_iter: int = 20, seed: int = 0) -> Self:
        """Learn topics from a (documents, words) matrix of counts, sparse or dense."""
        from sklearn.decomposition import LatentDirichletAllocation

        allocation = LatentDirichletAllocation(n_topics, max_iter=max_iter, random_state=seed)
        return cls(np.asarray(allocation.fit(counts).components_))

    def proportions(self, counts: scipy.sparse.csr_matrix) -> FloatArray:
        """Return the topic proportions of each row of counts; a row without any word gets equal ones."""
        from sklearn.decomposition import LatentDirichletAllocation

        # All that inference asks of a fitted model.
        allocation = LatentDirichletAllocation(len(self.components))
        allocation.components_ = self.components
        totals = scipy.special.digamma(self.components.sum(axis=1, keepdims=True))
        allocation.exp_dirichlet_component_ = np.exp(scipy.special.digamma(self.components) - totals)
        allocation.doc_topic_prior_ = 1 / len(self.components)
        return np.asarray(allocation.transform(scipy.sparse.csr_matrix(counts, dtype=np.float64)))
