"""TF-IDF and latent semantic analysis: text features without any weights to download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds
from sklearn.utils.validation import check_is_fitted

from diptych.arrays import FloatArray, unit_rows
from diptych.encoders.text.tfidf_weighting import inverse_document_frequencies, weighted_counts
from diptych.encoders.text.word_encoder import WordEncoder
from diptych.encoders.text.words import count_words, learn_vocabulary
from diptych.errors import InvalidInputError


class TfidfTopics(WordEncoder):
    """Latent semantic analysis: the leading singular directions of the TF-IDF matrix.

    A word that occurs c times weighs (1 + log c)(1 + log((1 + n)/(1 + n_w))), where
    n_w of the n training texts hold it; rows are scaled to unit length, projected on the leading right
    singular vectors of the training matrix and scaled to unit length again. A text without any known word becomes
    zero.

    Deerwester et al., "Indexing by latent semantic analysis", JASIS 1990. Use it for captions and documents when no
    sentence encoder is at hand; it learns from the training texts alone.

    Parameters
    ----------
    n_components:
        The number of features; fewer when the training texts do not span as many.
    stop_words, lemmas:
        As in :class:`WordPipeline`.
    min_documents:
        Words in fewer training texts are left out.

    Attributes
    ----------
    vocabulary_, idf_, components_:
        The words, their weights, and the singular vectors (features, words).

    Examples
    --------
    >>> from diptych.encoders import TfidfTopics
    >>> texts = ["a red boat", "a red ship", "a small cat", "a small dog", "a red cat"]
    >>> encoder = TfidfTopics(n_components=2, min_documents=1).fit(texts)
    >>> encoder.transform(["one red boat", "nothing known"]).shape
    (2, 2)
    """

    def __init__(
        self,
        *,
        n_components: int = 100,
        stop_words: str | None = "english",
        lemmas: bool | str = False,
        min_documents: int = 2,
    ) -> None:
        self.n_components = n_components
        self.stop_words = stop_words
        self.lemmas = lemmas
        self.min_documents = min_documents

    def fit(self, items: Sequence[str]) -> Self:
        """Learn the vocabulary, the word weights and the directions from training texts."""
        if self.n_components < 1:
            raise InvalidInputError(f"n_components must be at least 1, got {self.n_components}")
        self.vocabulary_ = learn_vocabulary(items, self.pipeline, self.min_documents)
        counts = count_words(items, self.vocabulary_, self.pipeline)
        self.idf_ = inverse_document_frequencies(counts)
        self.components_ = self._directions(weighted_counts(counts, self.idf_))
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row of unit length per text, zero for a text without a known word."""
        check_is_fitted(self)
        weighted = weighted_counts(count_words(items, self.vocabulary_, self.pipeline), self.idf_)
        return unit_rows(weighted @ self.components_.T).astype(np.float32)

    def _directions(self, weighted: csr_matrix) -> FloatArray:
        if self.n_components < min(weighted.shape):
            # A fixed start makes the iteration, which converges to machine precision, repeatable.
            start = np.random.default_rng(0).standard_normal(min(weighted.shape))
            _, lengths, directions = svds(weighted, k=self.n_components, v0=start)
        else:
            _, lengths, directions = np.linalg.svd(weighted.toarray(), full_matrices=False)
        order = np.argsort(-lengths, kind="stable")
        kept = order[lengths[order] > lengths.max() * 1e-10]
        return _with_fixed_signs(directions[kept])


def _with_fixed_signs(directions: FloatArray) -> FloatArray:
    """Turn each direction so that its largest entry is positive; a decomposition leaves the sign open."""
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    return np.asarray(directions * np.sign(largest))
