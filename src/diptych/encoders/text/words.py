"""Counting words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

from diptych.encoders.text.word_pipeline import WordPipeline
from diptych.errors import InvalidInputError


def learn_vocabulary(
    texts: Sequence[str], pipeline: WordPipeline, min_documents: int, max_words: int | None = None
) -> tuple[str, ...]:
    """Return the words that occur in at least ``min_documents`` texts, in alphabetical order.

    ``max_words`` keeps those that occur in the most texts; of equals, the first in the alphabet.

    >>> from diptych.encoders.text.word_pipeline import WordPipeline
    >>> from diptych.encoders.text.words import learn_vocabulary
    >>> learn_vocabulary(["a red boat", "the red house"], WordPipeline(), 2)
    ('red',)
    """
    check_texts(texts)
    if min_documents < 1:
        raise InvalidInputError(f"min_documents must be at least 1, got {min_documents}")
    counter = CountVectorizer(analyzer=pipeline.words, min_df=min(min_documents, len(texts)), binary=True)
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


def count_words(texts: Sequence[str], vocabulary: tuple[str, ...], pipeline: WordPipeline) -> csr_matrix:
    """Return the (texts, words) matrix of counts; words outside the vocabulary are ignored."""
    check_texts(texts)
    return CountVectorizer(vocabulary=vocabulary, analyzer=pipeline.words).transform(texts)


def check_texts(texts: Sequence[str]) -> None:
    """Raise unless ``texts`` is a sequence of at least one string."""
    if isinstance(texts, str):
        raise InvalidInputError("texts must be a sequence of strings, got one string; pass it in a list")
    if len(texts) == 0:
        raise InvalidInputError("there are no texts; pass at least one")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInputError(f"texts must be strings, but text {row} is a {type(text).__name__}")
