"""Counting words."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

from diptych.errors import InvalidInputError


def learn_vocabulary(texts: Sequence[str], stop_words: str | None, min_documents: int) -> tuple[str, ...]:
    """Return the words that occur in at least ``min_documents`` texts, in alphabetical order.

    >>> from diptych.encoders.text.words import learn_vocabulary
    >>> learn_vocabulary(["a red boat", "the red house"], "english", 2)
    ('red',)
    """
    _check_texts(texts)
    if min_documents < 1:
        raise InvalidInputError(f"min_documents must be at least 1, got {min_documents}")
    counter = CountVectorizer(stop_words=stop_words, min_df=min(min_documents, len(texts)))
    try:
        counter.fit(texts)
    except ValueError as error:
        raise InvalidInputError(
            f"no word is left in the {len(texts)} training texts; lower min_documents or pass more texts ({error})"
        ) from error
    return tuple(counter.get_feature_names_out().tolist())


def count_words(texts: Sequence[str], vocabulary: tuple[str, ...]) -> csr_matrix:
    """Return the (texts, words) matrix of counts; words outside the vocabulary are ignored."""
    _check_texts(texts)
    return CountVectorizer(vocabulary=vocabulary).transform(texts)


def _check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise InvalidInputError("texts must be a sequence of strings, got one string; pass it in a list")
    if len(texts) == 0:
        raise InvalidInputError("there are no texts; pass at least one")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInputError(f"texts must be strings, but text {row} is a {type(text).__name__}")
