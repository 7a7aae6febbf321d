"""The language of a short text, guessed from its script, its words and how they are spelt; and English words."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from diptych.atomic_files import atomic_write
from diptych.data.folders import cache_folder

LANGUAGES: Mapping[str, str] = {
    "ar": "Arabic",
    "cs": "Czech",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "th": "Thai",
    "tr": "Turkish",
    "zh": "Chinese",
}
"""The languages that are told apart, by their codes in ISO 639-1."""
OTHER = "other"
"""What stands for every language that is not one of them."""
MAX_WORD_LETTERS = 200
"""Longer words are no words of any language: they are left out of the guess."""
MAX_LETTERS_READ = 400
"""How many characters of a text the guess reads; more words do not make it any surer."""

_WORDS_FILE = Path(__file__).with_name("language_words.tsv")
_LANGUAGE_OF_SCRIPT = {"ARABIC": "ar", "CYRILLIC": "ru", "HANGUL": "ko", "THAI": "th", "CJK": "zh", "KANA": "ja"}
_SPELLED_OUT = {"HIRAGANA": "KANA", "KATAKANA": "KANA", "KATAKANA-HIRAGANA": "KANA", "IDEOGRAPHIC": "CJK"}
# A character says as much there as some letters of an alphabet do.
_LETTERS_PER_CHARACTER = {"CJK": 3, "KANA": 3, "HANGUL": 3}
# Letters of neighbours that share a script: of Ukrainian, Belarusian and Serbian, of Persian and Urdu.
_FOREIGN_LETTERS = {"ru": set("іїєґўђћџљњјѓќѕ"), "ar": set("پچژگکیٹڈڑےۓھہں")}
# A query says nothing of its language before it is read, except that most are in English.
_PRIOR = {"en": 0.3, OTHER: 0.015}
_RESTING_PRIOR = 0.075
# How often a word of the lists is met in its language, whatever the length of its list; the frequent ones stand in the
# order of how often they are met, which falls as Zipf's law has it. The other words are spelt as those of the lists
# are, by trigrams, pairs and single letters, each with its share, or else by any letter.
_LISTED, _FREQUENT, _RANKS_BEFORE = 1 / 2000, 1 / 10, 6
_CONTEXTS = (0.6, 0.28, 0.1)
_LETTERS, _ANY_LETTER = 60, 0.04
_ACCENTS_LEFT_OUT = 0.3
# The share of words that come from any other language: a surfer or a pizza does not decide.
_BORROWED = 0.003
# Words of a text depend on one another, so they prove less than their number says.
_EVIDENCE = 0.6
# What a person is told must be right nearly always.
_SURE, _FEWEST_WORDS = 0.8, 2


def language_probabilities(text: str) -> dict[str, float]:
    """Return how probable each language of a text is, the likeliest first; nothing for a text without letters.

    Scripts tell most languages apart. Those in Latin letters are told by lists of the words that photographs are
    described by, and by how such words are spelt, so that a word that is in no list has a say, too; accents may be left
    out. ``OTHER`` is every language in another script, and what looks like none of the known ones: a guess that is
    often too kind to relatives of these.

    >>> from diptych.encoders.text.languages import language_probabilities
    >>> probabilities = language_probabilities("ein Hund am Strand")
    >>> max(probabilities, key=probabilities.get), probabilities["en"] < 0.01
    ('de', True)
    """
    letters = Counter(filter(None, map(_script, unicodedata.normalize("NFKC", text).lower())))
    if not letters:
        return {}
    weights = {script: count * _LETTERS_PER_CHARACTER.get(script, 1) for script, count in letters.items()}
    # Japanese is written in three scripts, of which only one is its own.
    weights["CJK" if "KANA" not in weights else "KANA"] = weights.get("CJK", 0) + weights.get("KANA", 0)
    script = max(weights, key=lambda name: weights[name])
    return _by_words(text) if script == "LATIN" else {_by_script(text, script): 1.0}


def guess_language(text: str) -> str | None:
    """Return the code of the likeliest language of a text, ``OTHER``, or None for a text without letters.

    >>> from diptych.encoders.text.languages import guess_language
    >>> [guess_language(text) for text in ("two dogs", "deux chiens", "2 собаки", "一只狗", "δύο σκυλιά", "42")]
    ['en', 'fr', 'ru', 'zh', 'other', None]
    """
    return next(iter(language_probabilities(text)), None)


def language_note(text: str, understood: Collection[str]) -> str | None:
    """Return a sentence for a person who asks in a language that is not understood; None where that is not sure.

    One word of Latin letters may be a name or a loan, and so may words that look like no known language, so nothing is
    said of them.

    >>> from diptych.encoders.text.languages import language_note
    >>> language_note("dva psi na pláži", {"en"})
    'This looks like Czech, which the search model does not understand well; try English.'
    >>> [language_note(text, {"en"}) for text in ("two dogs", "pizza", "xqzv bnmk")]
    [None, None, None]
    """
    probabilities = language_probabilities(text)
    language = next(iter(probabilities), "en")
    is_latin = "en" in probabilities
    has_doubts = is_latin and (language == OTHER or sum(1 for _ in _words(text)) < _FEWEST_WORDS)
    if language == "en" or language in understood or has_doubts or probabilities[language] < _SURE:
        return None
    if language == OTHER:
        return "This looks like a language that the search model does not understand well; try English."
    return f"This looks like {LANGUAGES[language]}, which the search model does not understand well; try English."


@cache
def _script(letter: str) -> str:
    if not letter.isalpha():
        return ""
    name = unicodedata.name(letter, "UNKNOWN").split()[0]
    return _SPELLED_OUT.get(name, name)


def _by_script(text: str, script: str) -> str:
    language = _LANGUAGE_OF_SCRIPT.get(script, OTHER)
    return OTHER if _FOREIGN_LETTERS.get(language, set()).intersection(text.lower()) else language


def _by_words(text: str) -> dict[str, float]:
    scores = {language: math.log(_PRIOR.get(language, _RESTING_PRIOR)) for language in (*_spellings(), OTHER)}
    for word in _words(text):
        for language, evidence in _evidence(word).items():
            scores[language] += _EVIDENCE * evidence
    best = max(scores.values())
    shares = {language: math.exp(score - best) for language, score in scores.items()}
    total = sum(shares.values())
    return {language: shares[language] / total for language in sorted(shares, key=lambda name: -shares[name])}


@lru_cache(maxsize=4096)
def _evidence(word: str) -> dict[str, float]:
    """Return the logarithm of how often each language has this word."""
    chances = {language: spelling.probability(word) for language, spelling in _spellings().items()}
    # Of a language that is not known, all that can be said is that its letters come as they like.
    chances[OTHER] = _ANY_LETTER ** (len(word) + 1)
    borrowed = _BORROWED * max(chances.values())
    return {language: math.log(chance + borrowed) for language, chance in chances.items()}


def _words(text: str) -> Iterator[str]:
    # The capital dotted I of Turkish leaves its dot behind.
    lower = unicodedata.normalize("NFKC", text).lower().replace("\u0307", "")
    words = (match[0] for match in re.finditer(r"[^\W\d_]+", lower[:MAX_LETTERS_READ]))
    return (word for word in words if len(word) <= MAX_WORD_LETTERS)


class _Spelling:
    """The words of a language with their chances, and the counts of one, two and three letters in a row in them."""

    def __init__(self, words: Mapping[str, float]) -> None:
        self._words = words
        self._unlisted = 1 - sum(words.values())
        self._counts = _LetterCounts(words)

    def probability(self, word: str) -> float:
        marked, spelt = f"  {word} ", self._unlisted
        for place in range(2, len(marked)):
            spelt *= self._letter(marked[place - 2 : place], marked[place])
        return self._words.get(word, 0.0) + spelt

    def _letter(self, before: str, letter: str) -> float:
        chance = (1 - sum(_CONTEXTS)) / _LETTERS
        for share, context in zip(_CONTEXTS, (before, before[1:], ""), strict=True):
            chance += share * self._counts[context + letter] / (self._counts[context] or 1)
        return chance


class _LetterCounts(dict[str, int]):
    """How often letters follow one another in some words, counted when they are asked for: few of them ever are."""

    def __init__(self, words: Collection[str]) -> None:
        self._marked = marked = "".join(f"  {word} " for word in words)
        # Two of the three spaces around a word stand before a letter, and only the last one comes after others.
        super().__init__({" ": len(words), "  ": len(words), "": len(marked) - 2 * len(words)})

    def __missing__(self, letters: str) -> int:
        # Only what begins as it ends can begin again before it has ended.
        if letters[0] == letters[-1] and len(letters) > 1:
            count = len(re.findall(f"(?={re.escape(letters)})", self._marked))
        else:
            count = self._marked.count(letters)
        # What there is not is not kept: anything may be asked for.
        if count:
            self[letters] = count
        return count


@cache
def _lists() -> list[tuple[str, str, list[str]]]:
    """Return language, kind and words of each list."""
    lines = (line.split("\t") for line in _WORDS_FILE.read_text(encoding="utf-8").splitlines())
    return [(language, kind, words.split()) for language, kind, words in lines]


@cache
def describing_words(*, only_frequent: bool = False) -> frozenset[str]:
    """Return the words that photographs are described by, of all languages with lists, with and without accents.

    The frequent ones are those that hold sentences together, and what many captions begin with.

    >>> from diptych.encoders.text.languages import describing_words
    >>> [word in describing_words() for word in ("beach", "strand", "kaufland")]
    [True, True, False]
    >>> [word in describing_words(only_frequent=True) for word in ("the", "beach")]
    [True, False]
    """
    chosen = (words for _, kind, words in _lists() if kind == "often" or not only_frequent)
    return frozenset(form for words in chosen for word in words for form in (word, _without_accents(word)))


@cache
def _spellings() -> dict[str, _Spelling]:
    chances: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for language, kind, words in _lists():
        for rank, word in enumerate(words):
            chance = _FREQUENT / (rank + _RANKS_BEFORE) if kind == "often" else _LISTED
            chances[language][word] += chance
            if (plain := _without_accents(word)) != word:
                chances[language][plain] += _ACCENTS_LEFT_OUT * chance
    return {language: _Spelling(words) for language, words in chances.items()}


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word.replace("ł", "l").replace("ı", "i").replace("ß", "ss"))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


@lru_cache(maxsize=1 << 10)
def is_english_word(word: str) -> bool:
    """Return whether a lower-case word is in the dictionary of the package simplemma, which knows common names, too.

    >>> [is_english_word(word) for word in ("rockets", "starry", "kaufland")]
    [True, True, False]
    """
    if _is_plain(word):
        return f"\n{word}\n".encode() in _plain_words()
    # It has rules of its own for accents and apostrophes.
    from simplemma import is_known

    return bool(is_known(word, lang="en"))


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalnum() and word == word.lower()


@cache
def _plain_words() -> bytes:
    """Return the words of letters and digits, each between two ends of lines, from a file of the cache.

    The package unpacks its dictionary in a quarter of a second and keeps it in 20 MB: much for a word or two.
    """
    from importlib.metadata import version

    file = cache_folder() / "words" / f"english-{version('simplemma')}.txt"
    with suppress(OSError):
        digest, end, words = file.read_bytes().partition(b"\n")
        # One that was damaged is made anew.
        if _digest(words) == digest:
            return end + words
    words = "".join(f"{word}\n" for word in sorted(_unpacked())).encode()
    with suppress(OSError):
        _write(file, _digest(words) + b"\n" + words)
    return b"\n" + words


def _unpacked() -> set[str]:
    from simplemma.strategies import DefaultDictionaryFactory

    # A name is written with a capital, and found without.
    written = set(DefaultDictionaryFactory().get_dictionary("en"))
    found = written | {word.lower() for word in written if word == word.capitalize()}
    return set(filter(_is_plain, found))


def _digest(words: bytes) -> bytes:
    return hashlib.sha256(words).hexdigest().encode()


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as draft:
        draft.write_bytes(content)
