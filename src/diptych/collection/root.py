"""The folder of pictures that stored paths are relative to, and items by what a user names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from diptych.collection.item import Item
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_name, items_by_path
from diptych.collection.trusted_root import untrusted_root
from diptych.data.picture_files import split_moment
from diptych.data.remote_files import RemotePath, full_path, is_remote
from diptych.errors import InvalidInputError


def stored_root(root: Path, folder: Path) -> str:
    """Return the root as seen from the collection when it is around it, else its full path or its address."""
    root, folder = full_path(root), Path(os.path.abspath(folder))
    return os.path.relpath(root, folder) if folder.is_relative_to(root) else str(root)


def root_of(stored: str, folder: Path) -> Path:
    """Return the root that a collection in a folder has stored."""
    return full_path(stored if is_remote(stored) else folder / stored)


class Root:
    """The folder or address that stored paths are relative to, and whether files below it may be opened.

    ``untrusted_by`` is the collection whose user has not named the folder, so that nothing below it may be opened.

    >>> root = Root("/photos")
    >>> root.stored("/photos/a/b.jpg"), root.stored("/elsewhere/c.jpg"), str(root.file("a/b.jpg"))
    ('a/b.jpg', '/elsewhere/c.jpg', '/photos/a/b.jpg')
    """

    def __init__(self, folder: str | os.PathLike[str], untrusted_by: Path | None = None) -> None:
        self._untrusted_by = untrusted_by
        self.folder = full_path(folder)
        self._prefix = str(self.folder).rstrip(os.sep) + os.sep

    @property
    def is_trusted(self) -> bool:
        """True if files below it may be opened."""
        return self._untrusted_by is None

    def check_trusted(self) -> None:
        """Raise where this user has not named the folder, so that no file below it may be opened."""
        if self._untrusted_by is not None:
            raise untrusted_root(self._untrusted_by)

    def file(self, stored: str) -> Path:
        """Return the file of a stored path; a moment of a video keeps its time."""
        if isinstance(self.folder, RemotePath):
            return Path(stored) if stored.startswith("/") else self.folder / stored
        # Every answer has one, and a path is made faster of one text than of two.
        is_inside = stored[:1] != "/" and ":" not in stored
        return Path(self._prefix + stored) if is_inside else self.folder / stored

    def picture(self, stored: str) -> Path:
        """Return the file of a stored path; of a moment, that of its video."""
        path = self.file(stored)
        return split_moment(path)[0] if "#" in stored else path

    def given(self, path: str | os.PathLike[str]) -> Path:
        """Return the absolute path of what a user names: seen from the current folder, or else from the root."""
        if is_remote(path):
            return full_path(path)
        name = os.path.expanduser(path)
        full = os.path.abspath(name)
        if not os.path.isabs(name) and not os.path.lexists(full):
            below: Path = self.folder / name
            if isinstance(below, RemotePath) or os.path.lexists(below):
                return below
        # Thousands of files come this way, and most are given as they should be.
        return path if isinstance(path, Path) and name == full else Path(full)

    def stored(self, path: str | os.PathLike[str]) -> str:
        """Return the stored form of an absolute path."""
        name = os.fspath(path)
        return name.removeprefix(self._prefix).replace(os.sep, "/") if name.startswith(self._prefix) else name

    def check_inside(self, path: Path) -> None:
        """Raise for a remote file that is not below the root: only what its user has named is read."""
        if isinstance(path, RemotePath) and not path.is_relative_to(self.folder):
            raise InvalidInputError(f"it lies outside {self.folder}; name its address as the root of a collection")

    def missing(self, stored: Sequence[str]) -> list[str]:
        """Return those of some stored paths whose files are gone; a remote root is listed once."""
        if not isinstance(self.folder, RemotePath):
            return [path for path in stored if self.is_missing(path)]
        there = {str(path) for path in self.folder.files()}
        # Files of this machine may be in the collection, too.
        return [
            path
            for path in stored
            if (self.is_missing(path) if path.startswith("/") else str(self.picture(path)) not in there)
        ]

    def is_missing(self, stored: str) -> bool:
        """Return True if the file of a stored path is gone; one that merely cannot be reached is not."""
        name = os.path.join(self.folder, stored)
        try:
            if isinstance(self.folder, RemotePath):
                self.picture(stored).stat()
            else:
                # Paths are slow to make, and few are moments.
                os.stat(split_moment(name)[0] if "#" in stored else name)
        except OSError as problem:
            return isinstance(problem, (FileNotFoundError, NotADirectoryError))
        return False


def find_item(db: Connection, root: Root, which: str | os.PathLike[str]) -> tuple[int, Item] | None:
    """Return an item by id or path with its number, or None."""
    return find_items(db, root, [which])[0]


def find_items(db: Connection, root: Root, names: Sequence[str | os.PathLike[str]]) -> list[tuple[int, Item] | None]:
    """Return items by id or path with their numbers, None for each that is not there."""
    texts = [os.fspath(name).encode(errors="replace").decode().replace("\0", "?") for name in names]
    found: list[tuple[int, Item] | None] = []
    by_name = items_by_name(db, [text for text, name in zip(texts, names, strict=True) if isinstance(name, str)])
    left = [text for text in texts if text not in by_name]
    given = {text: root.stored(root.given(text)) for text in left}
    # A file that is gone is still known by the path it is stored under.
    by_path = items_by_path(db, {*left, *given.values()})
    for text in texts:
        found.append(by_name.get(text) or by_path.get(given[text]) or by_path.get(text))
    return found
