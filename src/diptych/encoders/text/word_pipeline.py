"""From a text or a query to the words that count: stop words, dictionary forms, places in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from diptych.errors import InvalidInputError, import_package

_CLOSED_CLASSES = (
    # articles and demonstratives
    "a an the this that these those here there",
    # pronouns
    "i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself",
    "we us our ours ourselves they them their theirs themselves who whom whose which what",
    # auxiliary verbs
    "am is are was were be been being do does did doing done have has had having can could may might must shall",
    "should will would",
    # what is left of contractions when the apostrophe cuts them
    "don doesn didn isn aren wasn weren won wouldn shouldn couldn hasn haven hadn ain ll ve re",
    # prepositions
    "about above across after against along among around as at before behind below beneath beside besides between",
    "beyond by despite down during except for from in inside into near of off on onto out outside over past per since",
    "than through throughout till to toward towards under underneath until up upon via with within without",
    # conjunctions
    "and but or so yet if because although though while whereas whether unless when where why how",
    # quantifiers and adverbs of degree and time
    "all any both each either every more most much neither no nor not other others another some such own same too very",
    "just only also then again once ever never now",
)

FUNCTION_WORDS = frozenset(word for line in _CLOSED_CLASSES for word in line.split())
"""The closed classes of English. Words that can be seen (fire, front, two) are not among them."""

PICTURE_WORDS = frozenset({"image", "images", "picture", "pictures", "photo", "photos", "pic", "pics"})
"""What people write when they search for a picture of something, whatever the something is."""
_LONGEST_UNCHANGED_WORD = 3
_WORD = re.compile(r"\b\w\w+\b")
# Single characters that belong together: between double quotes, or with full stops between, as in "t v" and T.V.
_SPELT_WORD = r'(?<=")\s*[^\W_](?:\s+[^\W_])+\s*(?=")|\b[^\W_](?:\.[^\W_])+\b'
# The ending after an apostrophe is no part of the word: a woman's, don't. Other apostrophes are: o'neill.
_PLAIN_WORD = r"([^\W_]+(?:['’](?!(?:s|t|d|m|ll|ve|re)\b)[^\W_]+)*)(?:['’](?:s|t|d|m|ll|ve|re)\b)?"
_QUERY_WORD = re.compile(f"({_SPELT_WORD})|{_PLAIN_WORD}", re.IGNORECASE)
_BETWEEN_LETTERS = re.compile(r"[\s.'’]+")


@cache
def find_stop_words(name: str | None) -> frozenset[str]:
    """Return a list of stop words: none for None, that of scikit-learn for ``"english"``, or ``"pictures"``.

    ``"pictures"`` joins :data:`FUNCTION_WORDS` and :data:`PICTURE_WORDS`, which Dong et al., "Cross-media similarity
    evaluation for web image retrieval in the wild", 2018, remove from queries.
    """
    if name is None:
        return frozenset()
    if name == "pictures":
        return FUNCTION_WORDS | PICTURE_WORDS
    if name == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    raise InvalidInputError(f"stop_words must be one of None, 'english', 'pictures', got {name!r}")


@lru_cache(maxsize=1 << 18)
def lemma(word: str) -> str:
    """Return the dictionary form of a lower-case English word: dogs, dog; wearing, wear.

    Words of up to three letters stay as they are, as in the preprocessing of Dong et al. (2018); the lemmas are those
    of the package simplemma. Answers are remembered, because a few thousand words make up most texts.
    """
    if len(word) <= _LONGEST_UNCHANGED_WORD:
        return word
    simplemma = import_package("simplemma", "lemmatising words", "simplemma==2.0.0")
    return str(simplemma.lemmatize(word, lang="en")).lower()


@dataclass(frozen=True)
class WordPipeline:
    """Cuts a text into the words that count: lower case, no punctuation, no single letters.

    All encoders that look at words share it, so that they agree on what a word is. With ``stop_words="pictures"`` and
    ``lemmas=True`` it is the preprocessing of Dong et al., "Cross-media similarity evaluation for web image retrieval
    in the wild", 2018.

    Parameters
    ----------
    stop_words:
        ``"english"`` leaves out the list of scikit-learn, ``"pictures"`` the function words of English and words such
        as photo and picture; None keeps all.
    lemmas:
        True replaces words of more than three letters by their English dictionary form. Needs the package simplemma.

    Examples
    --------
    >>> from diptych.encoders import WordPipeline
    >>> WordPipeline(stop_words="pictures", lemmas=True).words("A picture of two dogs, running!")
    ['two', 'dog', 'run']
    """

    stop_words: str | None = "english"
    lemmas: bool = False

    def words(self, text: str) -> list[str]:
        """Return the words of a text in order, repeated ones repeatedly."""
        dropped = find_stop_words(self.stop_words)
        words = [word for word in _WORD.findall(text.lower()) if word not in dropped]
        # A stop word can hide behind an inflected form.
        return [form for form in map(lemma, words) if form not in dropped] if self.lemmas else words


class QueryWord(NamedTuple):
    """A word of a query and where it stands there."""

    start: int
    end: int
    word: str  # in lower case, without punctuation

    @property
    def counts(self) -> bool:
        """Whether it says what is looked for: stop words and words such as photo do not."""
        return _is_content_word(self.word)


_QUERY_STOP_WORDS = find_stop_words("pictures")


def query_words(text: str) -> list[QueryWord]:
    """Return the words of a text in order, those that do not count included."""
    if not isinstance(text, str):
        raise InvalidInputError(f"a query must be a string, got a {type(text).__name__}")
    return [_query_word(match) for match in _QUERY_WORD.finditer(text)]


def _query_word(match: re.Match[str]) -> QueryWord:
    group = match.lastindex or 0
    found, (start, end) = match[group], match.span(group)
    word = found.lower()
    if not word.isalnum():
        start, end = start + len(found) - len(found.lstrip()), end - len(found) + len(found.rstrip())
        word = _BETWEEN_LETTERS.sub("", word)
    return QueryWord(start, end, word)


@lru_cache(maxsize=1 << 18)
def _is_content_word(word: str) -> bool:
    # A stop word can hide behind an inflected form.
    return word not in _QUERY_STOP_WORDS and lemma(word) not in _QUERY_STOP_WORDS


def clean_query(text: str) -> tuple[str, ...]:
    """Return the words of a query in order: lower case, no punctuation, dictionary forms, no stop words.

    This is the preprocessing of Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild",
    IEEE Transactions on Multimedia 2018, with the lemmas of simplemma in place of those of NLTK, and our own list of
    stop words. Single characters between double quotes, or each with a full stop, are one word.

    Use it wherever two queries are compared by their words, as the click models do: queries with the same words are
    then the same query, whatever their order, number and punctuation.

    Examples
    --------
    >>> from diptych.encoders import clean_query
    >>> clean_query("Pictures of the DOGS and cats!")
    ('dog', 'cat')
    >>> clean_query('jessie "t v" show'), clean_query("photo of the")
    (('jessie', 'tv', 'show'), ())
    """
    return tuple([lemma(word.word) for word in query_words(text) if word.counts])


_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


def is_short_query(text: str) -> bool:
    """Return whether a query has one or two words that say what is looked for; two characters are a word in Chinese.

    >>> from diptych.encoders.text.word_pipeline import is_short_query
    >>> [is_short_query(text) for text in ("a dog", "people in a restaurant", "two dogs run on a beach", "狗")]
    [True, True, False, True]
    """
    # Dictionary forms would find a few stop words more, and take longer to load than many a search.
    words = [word.word for word in query_words(text) if word.word not in _QUERY_STOP_WORDS]
    return 0 < sum(len(word) / 2 if _UNSPACED.match(word) else 1 for word in words) <= 2
