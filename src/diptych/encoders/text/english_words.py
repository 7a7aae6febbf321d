"""Words of English, and words that photographs are described by in many languages."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from diptych.atomic_files import atomic_write
from diptych.data.folders import cache_folder

_DESCRIBING_WORDS_FILE = Path(__file__).with_name("describing_words.txt")


@cache
def describing_words(*, only_frequent: bool = False) -> frozenset[str]:
    """Return the words that photographs are described by, in ten languages, without capitals and accents.

    The frequent ones are those that hold sentences together, and what many captions begin with.

    >>> from diptych.encoders.text.english_words import describing_words
    >>> [word in describing_words() for word in ("beach", "strand", "kaufland")]
    [True, True, False]
    >>> [word in describing_words(only_frequent=True) for word in ("the", "beach")]
    [True, False]
    """
    frequent, others = _DESCRIBING_WORDS_FILE.read_text(encoding="utf-8").split("\n\n")
    return frozenset(frequent.split() if only_frequent else (frequent + " " + others).split())


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
