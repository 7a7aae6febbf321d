"""Captions as Flickr8k has them: ``file#number``, a tab, the caption."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from diptych.data.caption_files.caption_record import CaptionRecord
from diptych.errors import InvalidInputError

_LINE = re.compile(r"(?P<file>[^\t]+)#(?P<number>\d+)\t(?P<caption>.*)")


def is_token_line(line: str) -> bool:
    """Say whether a line is one of such a file.

    >>> from diptych.data.caption_files.token_file import is_token_line
    >>> is_token_line("1.jpg#0\\ta boat"), is_token_line("1.jpg,a boat")
    (True, False)
    """
    return _LINE.fullmatch(line.rstrip("\r")) is not None


def read_token_file(path: Path, text: str) -> Iterator[CaptionRecord]:
    """Yield a record per picture, its captions in the order of their numbers."""
    captions: dict[str, list[tuple[int, str]]] = {}
    places: dict[str, int] = {}
    for row, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line.rstrip("\r"))
        if found is None:
            raise InvalidInputError(f"{path}: line {row} must be file#number, a tab and the caption, got {line[:60]!r}")
        captions.setdefault(found["file"], []).append((int(found["number"]), found["caption"]))
        places.setdefault(found["file"], row)
    for file, numbered in captions.items():
        listed = tuple(caption for _, caption in sorted(numbered, key=lambda pair: pair[0]))
        yield CaptionRecord(file, listed, f"{path}: line {places[file]}")
