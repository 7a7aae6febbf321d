"""Latent Dirichlet allocation: a text as proportions of topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from sklearn.utils.validation import check_is_fitted

from diptych.arrays import FloatArray
from diptych.encoders.text.word_encoder import WordEncoder
from diptych.encoders.text.words import count_words, learn_vocabulary
from diptych.encoders.topic_model import TopicModel
from diptych.errors import InvalidInputError


class LdaTopics(WordEncoder):
    """Topic proportions of latent Dirichlet allocation: non-negative rows that sum to one.

    Every text is a mixture of topics, every topic a distribution over words; both are inferred by variational Bayes.
    A text without any known word gets equal proportions.

    Blei et al., "Latent Dirichlet allocation", JMLR 2003; the text representation of Costa Pereira et al., 2014. Use it
    for documents of several sentences and where features must be probabilities; on single short captions
    :class:`TfidfTopics` keeps more.

    Parameters
    ----------
    n_topics:
        The number of topics, and of features.
    stop_words, lemmas, min_documents:
        As in :class:`TfidfTopics`.
    max_iter:
        Passes over the training texts.
    seed:
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

    def __init__(
        self,
        *,
        n_topics: int = 50,
        stop_words: str | None = "english",
        lemmas: bool | str = False,
        min_documents: int = 2,
        max_iter: int = 20,
        seed: int = 0,
    ) -> None:
        self.n_topics = n_topics
        self.stop_words = stop_words
        self.lemmas = lemmas
        self.min_documents = min_documents
        self.max_iter = max_iter
        self.seed = seed

    def fit(self, items: Sequence[str]) -> Self:
        """Learn the vocabulary and the topics from training texts."""
        if self.n_topics < 1 or self.max_iter < 1:
            raise InvalidInputError(
                f"n_topics and max_iter must be at least 1, got {self.n_topics} and {self.max_iter}"
            )
        self.vocabulary_ = learn_vocabulary(items, self.pipeline, self.min_documents)
        counts = count_words(items, self.vocabulary_, self.pipeline)
        self.components_ = TopicModel.learn(counts, self.n_topics, max_iter=self.max_iter, seed=self.seed).components
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return the topic proportions of each text."""
        check_is_fitted(self)
        return TopicModel(self.components_).proportions(count_words(items, self.vocabulary_, self.pipeline))
