"""The words of a query: which of them ask for something by its name, and where an item has them."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from diptych.collection.item import Item
from diptych.data.picture_files import is_picture_suffix, split_moment
from diptych.encoders.image.picture_parts import PictureText, PictureWord
from diptych.encoders.text.english_words import describing_words, is_english_word

_QUOTED = re.compile(r'["“„]([^"“”„]+)["”“]')
_WORD = re.compile(r"[^\W_]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
# Letters with strokes and ligatures, which Unicode does not take apart.
_PLAIN_LETTERS = str.maketrans(dict(zip("łđøıðħŧæœþ", (*"ldoidht", "ae", "oe", "th"), strict=True)))
# One or two digits say how many there are; more are a number that something goes by.
_COUNT = re.compile(r"\d{1,2}")
_FEW_WORDS = 2
_ARTICLES = ("a", "an", "the")
_IRREGULAR = (
    *("man men", "woman women", "child children", "person people", "foot feet", "tooth teeth", "mouse mice"),
    *("goose geese", "leaf leaves", "knife knives", "wolf wolves", "shelf shelves"),
)
_OTHER_NUMBER = {one: other for pair in _IRREGULAR for one, other in permutations(pair.split())}
_ENDS_IN_ES = ("s", "x", "z", "ch", "sh")
_SHORTEST_NOUN = 3
FILE_NAME, CAPTION, LABEL, PICTURE = "file name", "caption", "label", "text in picture"
# What people and cameras write into files, by the names of the fields.
_FIELDS = {"keywords": "keyword"}


def folded_words(text: str) -> list[str]:
    """Return the words of a text without capitals and accents, as the full-text index compares them.

    >>> folded_words("Café-Bar, IMG_2034")
    ['cafe', 'bar', 'img', '2034']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(sign for sign in decomposed if not unicodedata.combining(sign)).translate(_PLAIN_LETTERS)
    # Vowels of Indian scripts are marks, not letters.
    composed = unicodedata.normalize("NFC", plain)
    return "".join(sign if sign.isalnum() or unicodedata.category(sign)[0] == "M" else " " for sign in composed).split()


def other_number(word: str) -> str | None:
    """Return the plural of an English noun, or of a plural the singular; what is too short for one has none.

    >>> [other_number(word) for word in ("dog", "dogs", "boxes", "berry", "women", "glass", "x2")]
    ['dogs', 'dog', 'box', 'berries', 'woman', 'glasses', None]
    """
    if word in _OTHER_NUMBER:
        return _OTHER_NUMBER[word]
    if len(word) < _SHORTEST_NOUN or not (word.isascii() and word.isalpha()):
        return None
    if word.endswith("ies") and len(word) > len("ties"):
        return word[:-3] + "y"
    if word.endswith("es") and word[:-2].endswith(_ENDS_IN_ES):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1] if len(word) > _SHORTEST_NOUN else None
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(_ENDS_IN_ES) else "s")


@dataclass(frozen=True)
class SoughtWords:
    """The words of a query, and those that somebody who asks for something by its name must find.

    ``phrases`` are what stands in quotation marks, ``telling`` the words that photographs are not ordinarily described
    by (names, numbers, makes, what is written on signs) and that are no English words unless written with a capital,
    ``words`` all that do more than hold a sentence together.
    ``together`` is a query of ordinary words, which name something only where they stand together: three boats are not
    three houses and a boat.
    """

    phrases: tuple[str, ...]
    telling: tuple[str, ...]
    words: tuple[str, ...]
    together: str = ""

    @classmethod
    def of(cls, text: str) -> SoughtWords:
        """Take the words of a query apart.

        >>> SoughtWords.of('a sign "no exit" near Kaufland')
        SoughtWords(phrases=('no exit',), telling=('kaufland',), words=('sign', 'no', 'exit', 'kaufland'), together='')
        """
        phrases = tuple(" ".join(words) for quoted in _QUOTED.findall(text) if (words := folded_words(quoted)))
        quoted_words = [word for phrase in phrases for word in phrase.split()]
        every = list(dict.fromkeys(folded_words(text)))
        frequent, ordinary = describing_words(only_frequent=True), describing_words()
        # The ending of a file says nothing of it.
        empty = {word for word in every if word in frequent or is_picture_suffix(f".{word}")}
        content = [word for word in every if word in quoted_words or word not in empty]
        capitals = {word for part in _WORD.findall(text) if part[0].isupper() for word in folded_words(part)}
        unusual = [word for word in content if not (word in quoted_words or word in ordinary or _COUNT.fullmatch(word))]
        telling = [word for word in unusual if word in capitals or len(every) == 1 or not is_english_word(word)]
        said = [word for word in folded_words(text) if word not in _ARTICLES]
        is_plain = len(said) > 1 and not phrases and not telling
        return cls(phrases, tuple(telling), tuple(content), " ".join(said) if is_plain else "")

    @property
    def asks_by_name(self) -> bool:
        """Whether the query is likely to ask for something by its name instead of describing it."""
        return bool(self.phrases or self.telling or 0 < len(self.words) <= _FEW_WORDS)

    def forms(self, word: str) -> tuple[str, ...]:
        """Return the forms of a word of which one is enough: one dog or more, but what is quoted as it is."""
        is_quoted = any(word in phrase.split() for phrase in self.phrases)
        other = None if is_quoted else other_number(word)
        return (word,) if other is None else (word, other)

    def places_in(self, item: Item, text: PictureText | None) -> tuple[tuple[str, ...], bool]:
        """Return in which fields an item has some of the words, and whether it has all of them."""
        found: dict[str, None] = {}
        left, phrases = set(self.words), set(self.phrases)
        for name, value in said_fields(item, text):
            held = f" {' '.join(folded_words(value))} "
            here = {word for word in self.words if any(_holds(held, form) for form in self.forms(word))}
            if here:
                found[name] = None
                left -= here
                phrases = {phrase for phrase in phrases if not _holds(held, phrase)}
        return tuple(found), bool(self.words) and not left and not phrases

    def has_phrases(self, item: Item, text: PictureText | None) -> bool:
        """Return whether an item has what is quoted, or ordinary words together."""
        wanted = replace(self, phrases=(self.together,)) if self.together else self
        return wanted.places_in(item, text)[1]

    def names_in(self, item: Item, text: PictureText | None) -> frozenset[str]:
        """Return the telling words that an item has anywhere but in its captions."""
        values = (value for name, value in said_fields(item, text) if name != CAPTION)
        held = f" {' '.join(word for value in values for word in folded_words(value))} "
        return frozenset(word for word in self.telling if _holds(held, word))

    def boxes_in(self, text: PictureText) -> tuple[PictureWord, ...]:
        """Return the words in a picture that are among those sought."""
        sought = [form for word in self.words for form in self.forms(word)]
        held = ((word, f" {' '.join(folded_words(word.text))} ") for word in text.words)
        return tuple(word for word, said in held if any(_holds(said, form) for form in sought))


def _holds(text: str, words: str) -> bool:
    # Where words are written without spaces, they are cut by a dictionary that is not at hand here.
    return f" {words} " in text or (not words.isascii() and words in text)


def said_fields(item: Item, text: PictureText | None, *, with_captions: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the texts that an item is found by, each with the name of the field that it stands in."""
    if text is not None:
        yield PICTURE, text.text
    if with_captions:
        yield from ((CAPTION, caption) for caption in item.captions)
    yield from ((LABEL, label) for label in item.labels)
    if item.path is not None:
        # Paths are slow to make, and few are moments.
        path = str(split_moment(item.path)[0]) if "#" in item.path else item.path
        yield FILE_NAME, os.path.splitext(path)[0]
    yield from ((_FIELDS.get(name, name), said) for name, value in item.metadata.items() for said in _texts(value))


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return [value]
    if type(value) is int:
        return [str(value)]
    if isinstance(value, Mapping):
        return [said for part in value.values() for said in _texts(part)]
    if isinstance(value, (list, tuple)):
        return [said for part in value for said in _texts(part)]
    return [json.dumps(value)]
