"""Lines of words, as the files of TREC hold them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote

from diptych.errors import InvalidInputError

_UNSAFE = re.compile(r"[\s%]")


def open_text(path: Path, mode: Literal["rt", "wt"]) -> IO[str]:
    """Open a UTF-8 file, compressed if its name ends in ``.gz``."""
    try:
        if path.suffix == ".gz":
            return gzip.open(path, mode, encoding="utf-8", newline="\n")
        return path.open(mode, encoding="utf-8", newline="\n")
    except OSError as error:
        doing = "read" if mode == "rt" else "written"
        raise InvalidInputError(f"{path} cannot be {doing}: {error.strerror or error}; check the path") from error


@lru_cache(maxsize=1 << 16)
def as_word(name: str) -> str:
    """Return ``name`` without white space, which would end the field: written as in addresses, ``%20``.

    >>> from diptych.benchmark.exchange.trec_lines import as_word
    >>> as_word("my cat.jpg"), as_word("100%.jpg")
    ('my%20cat.jpg', '100%25.jpg')
    """
    if not name:
        raise InvalidInputError("an item or query has an empty name; give every one a name of its own")
    return _UNSAFE.sub(lambda found: quote(found.group(), safe=""), name)


def fields_of(path: Path, fields: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the words of every line that is not empty, which must have as many words as ``fields``."""
    try:
        with open_text(path, "rt") as file:
            for number, line in enumerate(file, start=1):
                words = line.split()
                if not words:
                    continue
                if len(words) != len(fields):
                    raise InvalidInputError(
                        f"{path}: line {number} has {len(words)} words, expected {len(fields)}: {' '.join(fields)}"
                    )
                yield number, words
    except (UnicodeDecodeError, EOFError, OSError) as error:
        raise InvalidInputError(f"{path} is not a text file in UTF-8; check that it is the right file") from error
