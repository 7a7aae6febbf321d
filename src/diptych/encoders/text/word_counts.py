"""Counting words: the vocabulary, counts and weights that the encoders of words share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.encoders.encoder import Encoder, Modality, check_texts
from diptych.encoders.text.word_pipeline import WordPipeline
from diptych.errors import InvalidInputError
from diptych.estimators import scikit_learn


def _counter(**options: Any) -> Any:
    return scikit_learn("sklearn.feature_extraction.text").CountVectorizer(**options)


def learn_vocabulary(
    texts: Sequence[str], pipeline: WordPipeline, min_documents: int, max_words: int | None = None
) -> tuple[str, ...]:
    """Return the words that occur in at least ``min_documents`` texts, in alphabetical order.

    ``max_words`` keeps those that occur in the most texts; of equals, the first in the alphabet.
    """
    check_texts(texts)
    if min_documents < 1:
        raise InvalidInputError(f"min_documents must be at least 1, got {min_documents}")
    counter = _counter(analyzer=pipeline.words, min_df=min(min_documents, len(texts)), binary=True)
    try:
        holds = counter.fit_transform(texts)
    except ValueError as error:
        raise InvalidInputError(
            f"no word is left in the {len(texts)} training texts; lower min_documents or pass more texts ({error})"
        ) from error
    words = counter.get_feature_names_out()
    if max_words is None or len(words) <= max_words:
        return tuple(words.tolist())
    commonest = np.argsort(-np.bincount(holds.indices, minlength=len(words)), kind="stable")[:max_words]
    return tuple(words[np.sort(commonest)].tolist())


def count_words(texts: Sequence[str], vocabulary: tuple[str, ...], pipeline: WordPipeline) -> scipy.sparse.csr_matrix:
    """Return the (texts, words) matrix of counts; words outside the vocabulary are ignored."""
    check_texts(texts)
    return _counter(vocabulary=vocabulary, analyzer=pipeline.words).transform(texts)


def inverse_document_frequencies(counts: scipy.sparse.csr_matrix) -> FloatArray:
    """Return 1 + log((1 + n)/(1 + n_w)) for each word, where n_w of the n rows hold it."""
    holders = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.asarray(1 + np.log((1 + counts.shape[0]) / (1 + holders)))


def weighted_counts(counts: scipy.sparse.csr_matrix, idf: FloatArray) -> scipy.sparse.csr_matrix:
    """Return rows of (1 + log c)·idf scaled to unit length, where a word occurs c times."""
    weights = counts.astype(np.float64)
    weights.data = 1 + np.log(weights.data)
    return scikit_learn("sklearn.preprocessing").normalize(weights @ scipy.sparse.diags(idf), copy=False)


class WordEncoder(Encoder):
    """An encoder of texts with the parameters of :class:`WordPipeline`: ``stop_words`` and ``lemmas``."""

    modality: ClassVar[Modality] = "text"

    stop_words: str | None
    lemmas: bool | str

    @property
    def identity(self) -> str:
        """As for every encoder, but lemmas are named only where there are any.

        They came later than the other parameters, and features made before them must be found under their old name.
        """
        return super().identity.replace("lemmas=False, ", "", 1)

    @property
    def pipeline(self) -> WordPipeline:
        """What cuts the texts into words."""
        return WordPipeline(stop_words=self.stop_words, lemmas=self.lemmas)
