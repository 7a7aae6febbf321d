"""Texts by counted words, without any weights to download: TF-IDF, latent semantic analysis (LSA) and LDA topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy

from diptych.arrays import FloatArray, unit_rows
from diptych.encoders.encoder import Encoder, check_texts
from diptych.encoders.text.word_pipeline import WordPipeline
from diptych.errors import InvalidInputError
from diptych.estimators import check_is_fitted, scikit_learn


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


@dataclass(kw_only=True, eq=False, repr=False)
class WordEncoder(Encoder):
    """An encoder of texts with the parameters of :class:`WordPipeline`: ``stop_words`` and ``lemmas``."""

    stop_words: str | None = "english"
    lemmas: bool = False

    @property
    def pipeline(self) -> WordPipeline:
        """What cuts the texts into words."""
        return WordPipeline(stop_words=self.stop_words, lemmas=self.lemmas)


@dataclass(kw_only=True, eq=False, repr=False)
class _CountedWords(WordEncoder):
    """An encoder that learns which words there are in the training texts, and counts them."""

    min_documents: int = 2

    def _learn_counts(self, texts: Sequence[str], max_words: int | None = None) -> scipy.sparse.csr_matrix:
        """Learn the vocabulary, and return the counts of its words in the training texts."""
        self.vocabulary_ = learn_vocabulary(texts, self.pipeline, self.min_documents, max_words)
        return count_words(texts, self.vocabulary_, self.pipeline)

    def _counts(self, texts: Sequence[str]) -> scipy.sparse.csr_matrix:
        check_is_fitted(self)
        return count_words(texts, self.vocabulary_, self.pipeline)


@dataclass(kw_only=True, eq=False, repr=False)
class Tfidf(_CountedWords):
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

    max_words: int = 1000

    def fit(self, items: Sequence[str]) -> Self:
        """Learn the vocabulary and the word weights from training texts."""
        if self.max_words < 1:
            raise InvalidInputError(f"max_words must be at least 1, got {self.max_words}")
        self.idf_ = inverse_document_frequencies(self._learn_counts(items, self.max_words))
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row of unit length per text, zero for a text without a known word."""
        counts = self._counts(items)
        return np.asarray(weighted_counts(counts, self.idf_).astype(np.float32).toarray())


@dataclass(kw_only=True, eq=False, repr=False)
class TfidfTopics(_CountedWords):
    """Latent semantic analysis: the leading singular directions of the TF-IDF matrix.

    The rows of :class:`Tfidf`, with all words, are projected on the leading right singular vectors of the training
    matrix and scaled to unit length again. A text without any known word becomes zero.

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

    n_components: int = 100

    def fit(self, items: Sequence[str]) -> Self:
        """Learn the vocabulary, the word weights and the directions from training texts."""
        if self.n_components < 1:
            raise InvalidInputError(f"n_components must be at least 1, got {self.n_components}")
        counts = self._learn_counts(items)
        self.idf_ = inverse_document_frequencies(counts)
        self.components_ = self._directions(weighted_counts(counts, self.idf_))
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row of unit length per text, zero for a text without a known word."""
        counts = self._counts(items)
        return unit_rows(weighted_counts(counts, self.idf_) @ self.components_.T).astype(np.float32)

    def _directions(self, weighted: scipy.sparse.csr_matrix) -> FloatArray:
        if self.n_components < min(weighted.shape):
            # A fixed start makes the iteration, which converges to machine precision, repeatable.
            start = np.random.default_rng(0).standard_normal(min(weighted.shape))
            _, lengths, directions = scipy.sparse.linalg.svds(weighted, k=self.n_components, v0=start)
        else:
            _, lengths, directions = np.linalg.svd(weighted.toarray(), full_matrices=False)
        order = np.argsort(-lengths, kind="stable")
        kept = order[lengths[order] > lengths.max() * 1e-10]
        # A decomposition leaves the sign open: the largest entry of each direction is made positive.
        largest = np.take_along_axis(directions[kept], np.abs(directions[kept]).argmax(axis=1)[:, None], axis=1)
        return np.asarray(directions[kept] * np.sign(largest))


@dataclass(kw_only=True, eq=False, repr=False)
class LdaTopics(_CountedWords):
    """Topic proportions of latent Dirichlet allocation: non-negative rows that sum to one.

    Every text is a mixture of topics, every topic a distribution over words; both are inferred by variational Bayes
    (Hoffman et al., "Online learning for latent Dirichlet allocation", NIPS 2010), as scikit-learn has it.
    A text without any known word gets equal proportions.

    Blei et al., "Latent Dirichlet allocation", JMLR 2003; the text representation of Costa Pereira et al., 2014. Use it
    for documents of several sentences and where features must be probabilities; on single short captions
    :class:`TfidfTopics` keeps more.

    Parameters
    ----------
    n_topics:
        The number of topics, and of features.
    stop_words, lemmas:
        As in :class:`WordPipeline`.
    min_documents:
        Words in fewer training texts are left out.
    max_iter:
        Passes over the training texts.
    random_state:
        Of the starting point.

    Attributes
    ----------
    vocabulary_, components_:
        The words, and the weight of each word in each topic (topics, words).

    Examples
    --------
    >>> from diptych.encoders import LdaTopics
    >>> texts = ["red boat sea", "red ship sea", "small cat grass", "small dog grass"]
    >>> proportions = LdaTopics(n_topics=2, min_documents=1).fit_transform(texts)
    >>> proportions.shape, bool(abs(proportions.sum(axis=1) - 1).max() < 1e-12)
    ((4, 2), True)
    """

    n_topics: int = 50
    max_iter: int = 20
    random_state: int = 0

    def fit(self, items: Sequence[str]) -> Self:
        """Learn the vocabulary and the topics from training texts."""
        self.components_ = learn_topics(self._learn_counts(items), self.n_topics, self.max_iter, self.random_state)
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return the topic proportions of each text."""
        counts = self._counts(items)
        return topic_proportions(self.components_, counts)


def _allocation(n_topics: int, **options: Any) -> Any:
    return scikit_learn("sklearn.decomposition").LatentDirichletAllocation(n_topics, **options)


def learn_topics(counts: Any, n_topics: int, max_iter: int, random_state: int) -> FloatArray:
    """Return the weight of each word in each topic (topics, words), learned from counts (items, words)."""
    if n_topics < 1 or max_iter < 1:
        raise InvalidInputError(f"n_topics and max_iter must be at least 1, got {n_topics} and {max_iter}")
    allocation = _allocation(n_topics, max_iter=max_iter, random_state=random_state)
    return np.asarray(allocation.fit(counts).components_)


def topic_proportions(components: FloatArray, counts: scipy.sparse.csr_matrix) -> FloatArray:
    """Return the topic proportions of each row of counts; a row without any word gets equal ones."""
    # All that inference asks of a fitted model.
    allocation = _allocation(len(components))
    allocation.components_ = components
    totals = scipy.special.digamma(components.sum(axis=1, keepdims=True))
    allocation.exp_dirichlet_component_ = np.exp(scipy.special.digamma(components) - totals)
    allocation.doc_topic_prior_ = 1 / len(components)
    return np.asarray(allocation.transform(scipy.sparse.csr_matrix(counts, dtype=np.float64)))
