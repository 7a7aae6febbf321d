"""Paths as people read and paste them."""

from __future__ import annotations

import os
from pathlib import Path


def shown_path(path: Path) -> str:
    """Return the shortest form of a path that works from the current folder.

    >>> from pathlib import Path
    >>> from diptych.cli.shown_path import shown_path
    >>> shown_path(Path.cwd() / "photos" / "1.jpg"), shown_path(Path("/elsewhere/2.jpg"))
    ('photos/1.jpg', '/elsewhere/2.jpg')
    """
    here = Path.cwd()
    return os.fspath(path.relative_to(here) if path.is_relative_to(here) else path)


def printable(text: str) -> str:
    """Return a text on one line without control characters, which file names may hold and terminals obey.

    >>> from diptych.cli.shown_path import printable
    >>> printable("a\\nb\\x1b[31m")
    'a�b�[31m'
    """
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
