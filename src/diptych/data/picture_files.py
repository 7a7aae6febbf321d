"""The picture files of a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from diptych.data.picture_kinds import picture_suffixes, unread_reason
from diptych.errors import InvalidInputError

OnUnreadable = Callable[[Path, str], None]


def find_pictures(folder: str | os.PathLike[str], *, on_unreadable: OnUnreadable | None = None) -> Iterator[Path]:
    """Yield the picture files under ``folder``, in the order of their paths.

    A picture is a regular file, or a link to one, with one of the :func:`picture_suffixes`; nothing is opened, so pipes
    and devices cannot block. Hidden files and folders are left out. A link to a folder is followed when the folder lies
    elsewhere, and each folder is entered once, so links in a circle end. ``on_unreadable(path, reason)`` is told of
    folders and links that cannot be read, and of pictures of kinds that cannot be read on this machine; without it they
    are passed over.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.data import find_pictures
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.PNG", "a.jpg", ".hidden.jpg", "notes.txt"):
    ...         (Path(folder) / name).touch()
    ...     [picture.name for picture in find_pictures(folder)]
    ['a.jpg', 'b.PNG']
    """
    root = Path(folder)
    if not root.is_dir():
        what = "is a file" if root.exists() else "does not exist"
        raise InvalidInputError(f"{root} {what}; name the folder that holds the pictures")
    return _walk(root, on_unreadable or (lambda path, reason: None))


def _walk(root: Path, on_unreadable: OnUnreadable) -> Iterator[Path]:
    suffixes = picture_suffixes()
    real_root = root.resolve()
    entered = {_key(os.stat(root))}
    # A stack of open listings instead of recursion: folders may nest deeper than Python's stack.
    listings = [iter(_entries(root, on_unreadable))]
    while listings:
        entry = next(listings[-1], None)
        if entry is None:
            listings.pop()
            continue
        path = Path(entry.path)
        try:
            if entry.is_dir():
                if _is_new(entry, real_root, entered):
                    listings.append(iter(_entries(path, on_unreadable)))
            elif path.suffix.lower() in suffixes and entry.is_file():
                yield path
            elif (reason := unread_reason(path)) and entry.is_file():
                on_unreadable(path, reason)
        except OSError as error:
            on_unreadable(path, error.strerror or str(error))


def _is_new(entry: os.DirEntry[str], real_root: Path, entered: set[tuple[int, int]]) -> bool:
    """Say whether a folder has not been entered and will not be, by another way; it counts as entered from now on."""
    if entry.is_symlink():
        target = Path(entry.path).resolve()
        # What is walked anyway, or a folder that holds all of it.
        if target.is_relative_to(real_root) or real_root.is_relative_to(target):
            return False
    key = _key(os.stat(entry.path))
    is_new = key not in entered
    entered.add(key)
    return is_new


def _entries(folder: Path, on_unreadable: OnUnreadable) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        on_unreadable(folder, error.strerror or str(error))
        return []


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
