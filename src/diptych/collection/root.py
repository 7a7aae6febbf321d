"""Between stored paths and files."""

from __future__ import annotations

import os
from pathlib import Path


class Root:
    """The folder that stored paths are relative to, so that a collection can move together with its pictures.

    >>> from diptych.collection.root import Root
    >>> root = Root("/photos")
    >>> root.stored("/photos/a/b.jpg"), root.stored("/elsewhere/c.jpg"), str(root.file("a/b.jpg"))
    ('a/b.jpg', '/elsewhere/c.jpg', '/photos/a/b.jpg')
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._prefix = str(self.folder).rstrip(os.sep) + os.sep

    def file(self, stored: str) -> Path:
        """Return the file of a stored path."""
        return self.folder / stored

    def given(self, path: str | os.PathLike[str]) -> Path:
        """Return the absolute path of what a user names: seen from the current folder, or else from the root."""
        name = os.path.expanduser(path)
        full = os.path.abspath(name)
        if not os.path.isabs(name) and not os.path.lexists(full) and os.path.lexists(self.folder / name):
            return self.folder / name
        # Thousands of files come this way, and most are given as they should be.
        return path if isinstance(path, Path) and name == full else Path(full)

    def stored(self, path: str | os.PathLike[str]) -> str:
        """Return the stored form of an absolute path."""
        name = os.fspath(path)
        return name.removeprefix(self._prefix).replace(os.sep, "/") if name.startswith(self._prefix) else name

    def is_missing(self, stored: str) -> bool:
        """Say whether the file of a stored path is gone; one that merely cannot be reached is not."""
        try:
            os.stat(self.folder / stored)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return False
