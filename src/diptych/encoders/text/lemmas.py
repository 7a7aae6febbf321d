"""The dictionary form of a word."""

from __future__ import annotations

from functools import lru_cache

from diptych.errors import InvalidInputError, MissingPackageError

_SHORT = 3


@lru_cache(maxsize=1 << 18)
def lemma(word: str, language: str = "en") -> str:
    """Return the dictionary form of a lower-case word: dogs, dog; wearing, wear.

    Words of up to three letters stay as they are, as in the preprocessing of Dong et al. (2018); the lemmas are those
    of the package simplemma. Answers are remembered, because a few thousand words make up most texts.

    >>> from diptych.encoders.text.lemmas import lemma
    >>> lemma("children"), lemma("was")
    ('child', 'was')
    """
    if len(word) <= _SHORT:
        return word
    try:
        from simplemma import lemmatize
    except ImportError as error:
        raise MissingPackageError("lemmatising words", "simplemma==2.0.0") from error
    try:
        return str(lemmatize(word, lang=language)).lower()
    except ValueError as error:
        raise InvalidInputError(
            f"there are no lemmas for the language {language!r}; pass a code such as 'en', 'de' or 'fr'"
        ) from error
