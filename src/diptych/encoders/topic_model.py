"""Latent Dirichlet allocation over counts of any kind of words: written or visual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import digamma
from sklearn.decomposition import LatentDirichletAllocation

from diptych.arrays import FloatArray, row_blocks

_STEPS = 100
_TOLERANCE = 1e-3
# Of (count, topic) products held at once: 64 MB.
_BLOCK_ENTRIES = 8_000_000


@dataclass(frozen=True)
class TopicModel:
    """Topics as distributions over words, and the inference of how much of each is in a document.

    A document is a mixture θ of K topics with prior θ ~ Dirichlet(1/K), a topic a distribution over words whose
    posterior is Dirichlet(λ_k). Learning is the variational Bayes of Hoffman et al., "Online learning for latent
    Dirichlet allocation", NIPS 2010, as scikit-learn has it; inference repeats its per-document step

        γ_k = 1/K + Σ_w n_w φ_wk,   φ_wk ∝ exp(ψ(γ_k) + E[log β_kw])

    until γ changes by less than a thousandth on average, for many documents at once, and returns γ / Σγ.

    Parameters
    ----------
    components:
        λ, the (topics, words) weights; everything else follows from them.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders.topic_model import TopicModel
    >>> counts = np.array([[4, 3, 0, 0], [3, 5, 0, 0], [0, 0, 4, 4], [0, 0, 5, 3]])
    >>> winners = TopicModel.learn(counts, 2).proportions(counts).argmax(axis=1)
    >>> bool(winners[0] == winners[1] != winners[2] == winners[3])
    True
    """

    components: FloatArray

    @classmethod
    def learn(cls, counts: csr_matrix, n_topics: int, *, max_iter: int = 20, seed: int = 0) -> Self:
        """Learn topics from a (documents, words) matrix of counts, sparse or dense."""
        allocation = LatentDirichletAllocation(n_topics, max_iter=max_iter, random_state=seed)
        return cls(np.asarray(allocation.fit(counts).components_))

    def proportions(self, counts: csr_matrix) -> FloatArray:
        """Return the topic proportions of each row of counts; a row without any word gets equal ones."""
        counts = csr_matrix(counts, dtype=np.float64)
        words = np.exp(digamma(self.components) - digamma(self.components.sum(axis=1, keepdims=True))).T
        proportions = np.empty((counts.shape[0], len(self.components)))
        mean_length = max(1, counts.nnz // max(1, counts.shape[0]))
        for rows in row_blocks(counts.shape[0], _BLOCK_ENTRIES // (mean_length * len(self.components))):
            weights = _infer(counts[rows], words)
            proportions[rows] = weights / weights.sum(axis=1, keepdims=True)
        return proportions


def _infer(counts: csr_matrix, words: FloatArray) -> FloatArray:
    """Return γ of each document; a document leaves the iteration as soon as its own γ has settled."""
    gamma = np.ones((counts.shape[0], words.shape[1]))
    moving = np.arange(counts.shape[0])
    part, vectors = counts, words[counts.indices]
    for _ in range(_STEPS):
        before = gamma[moving]
        gamma[moving] = after = _step(part, vectors, words, before)
        settled = np.abs(after - before).mean(axis=1) < _TOLERANCE
        if settled.all():
            break
        if settled.any():
            moving = moving[~settled]
            part = counts[moving]
            vectors = words[part.indices]
    return gamma


def _step(counts: csr_matrix, vectors: FloatArray, words: FloatArray, gamma: FloatArray) -> FloatArray:
    topics = np.exp(digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True)))
    owners = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    # The small number keeps a word that no topic explains from dividing by zero.
    explained = np.einsum("nk,nk->n", topics[owners], vectors) + np.finfo(np.float64).eps
    shares = csr_matrix((counts.data / explained, counts.indices, counts.indptr), shape=counts.shape)
    return np.asarray(1 / words.shape[1] + topics * (shares @ words))
