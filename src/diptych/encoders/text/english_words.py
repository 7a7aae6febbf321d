"""The words of English, as the package simplemma has them, in a file of the cache that is made once.

The package unpacks its dictionary in a quarter of a second and keeps it in 20 MB: much for a word or two of a query.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

from diptych.atomic_files import atomic_write
from diptych.data.folders import cache_folder


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
    """Return the words of letters and digits, each between two ends of lines."""
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
