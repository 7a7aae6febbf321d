"""TF-IDF over the commonest words, without any reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from diptych.arrays import FloatArray
from diptych.encoders.text.tfidf_weighting import inverse_document_frequencies, weighted_counts
from diptych.encoders.text.word_encoder import WordEncoder
from diptych.encoders.text.words import count_words, learn_vocabulary
from diptych.errors import InvalidInputError


class Tfidf(WordEncoder):
    """TF-IDF weights of the commonest words: one feature per word, rows of unit length.

    A word that occurs c times weighs (1 + log c)(1 + log((1 + n)/(1 + n_w))), where n_w of the n training texts hold
    it. A text without any known word becomes zero.

    Salton and Buckley, "Term-weighting approaches in automatic text retrieval", 1988. Use it where each feature should
    be a word that a person can read, or where a model does its own reduction; :class:`TfidfTopics` uses all words and
    is smaller. The rows are dense, so the number of words is bounded: 1,000 is the width of the TF-IDF features that
    are distributed with the Wikipedia data set.

    Parameters
    ----------
    max_words:
        The number of features at most; words that occur in the most training texts are kept.
    stop_words, lemmas:
        As in :class:`WordPipeline`.
    min_documents:
        Words in fewer training texts are left out.

    Attributes
    ----------
    vocabulary_, idf_:
        The words and their weights.

    Examples
    --------
    >>> from diptych.encoders import Tfidf
    >>> encoder = Tfidf(min_documents=1).fit(["a red boat", "a red ship"])
    >>> encoder.vocabulary_
    ('boat', 'red', 'ship')
    >>> encoder.transform(["red boat"]).round(2)
    array([[0.81, 0.58, 0.  ]], dtype=float32)
    """

    def __init__(
        self,
        *,
        max_words: int = 1000,
        stop_words: str | None = "english",
        lemmas: bool | str = False,
        min_documents: int = 2,
    ) -> None:
        self.max_words = max_words
        self.stop_words = stop_words
        self.lemmas = lemmas
        self.min_documents = min_documents

    def fit(self, items: Sequence[str]) -> Self:
        """Learn the vocabulary and the word weights from training texts."""
        if self.max_words < 1:
            raise InvalidInputError(f"max_words must be at least 1, got {self.max_words}")
        self.vocabulary_ = learn_vocabulary(items, self.pipeline, self.min_documents, self.max_words)
        self.idf_ = inverse_document_frequencies(count_words(items, self.vocabulary_, self.pipeline))
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row of unit length per text, zero for a text without a known word."""
        check_is_fitted(self)
        counts = count_words(items, self.vocabulary_, self.pipeline)
        return np.asarray(weighted_counts(counts, self.idf_).astype(np.float32).toarray())
