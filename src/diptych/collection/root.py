"""The folder of pictures of a collection: paths relative to it, items by path, who trusts it, and which files are sent.

A collection names its root itself, so a collection from elsewhere could name any folder. The root is trusted only if
this user made the collection here or named the folder: each such pair of folders is a line of a file in the user's
state folder. A copied, moved or restored collection has another place and is therefore searched without its files.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from diptych.collection.item import Item
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_name, items_by_path
from diptych.data.folders import cache_folder, data_folder, state_folder
from diptych.data.picture_files import split_moment
from diptych.data.remote_files import RemotePath, full_path, is_remote, is_whole_computer, refuse_address
from diptych.errors import CollectionError, InvalidInputError, UntrustedRootError

ROOT = "root"
"""The setting that has the folder of the pictures, as seen from the collection where it lies around it."""
MAX_KEPT_DIGESTS = 4096
_digests: dict[tuple[int, ...], str] = {}


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


class OriginalError(CollectionError):
    """The file of an item is not handed out; ``kind`` names the reason for programs."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def trust_root(collection: str | os.PathLike[str], root: str | os.PathLike[str]) -> None:
    """Remember that this user named ``root`` as the folder of pictures of the collection at this place."""
    check_root(collection, root)
    if is_trusted_root(collection, root):
        return
    file = _trust_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # One short write to a file opened for appending is atomic: two processes lose no line of each other.
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{_line(collection, root)}\n".encode())
    finally:
        os.close(handle)


def is_trusted_root(collection: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Return True if this user made the collection here with this root, or named the root for it."""
    try:
        lines = _trust_file().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    return _line(collection, root) in lines and not refused_root(collection, root)


def check_root(collection: str | os.PathLike[str], root: str | os.PathLike[str]) -> None:
    """Raise if a folder may not be the root of a collection."""
    reason = refused_root(collection, root)
    if reason:
        raise InvalidInputError(f"{os.fspath(root)} {reason}; name the folder that holds the pictures")


def refused_root(collection: str | os.PathLike[str], root: str | os.PathLike[str]) -> str:
    """Return why a folder may not be the root of a collection; empty where it may.

    >>> refused_root("/photos/.diptych", "/photos"), refused_root("/photos/.diptych", "/")
    ('', 'is the whole file system')
    """
    if is_remote(root):
        refuse_address(full_path(root))
        return "is the whole file system of a computer" if is_whole_computer(full_path(root)) else ""
    real = Path(os.path.realpath(root))
    if real == Path(real.anchor):
        return "is the whole file system"
    if real.is_relative_to(os.path.realpath(collection)):
        return "belongs to the collection itself"
    if _is_private(real):
        return "is a hidden folder where programs keep their state"
    return ""


def untrusted_root(collection: str | os.PathLike[str]) -> UntrustedRootError:
    """Return the error for a collection whose root this user has not named."""
    folder = os.fspath(collection)
    return UntrustedRootError(
        f"{folder} was made elsewhere, so no file of its pictures is opened; name their folder once: "
        f"diptych index FOLDER --collection {folder} --root FOLDER"
    )


def open_original(path: Path, content_hash: str | None, root: Path, collection: Path) -> BinaryIO:
    """Open the picture or video of an item, or raise :class:`OriginalError`.

    It must be a regular file inside ``root`` after all links are followed, a picture or video, and hold the content
    that was indexed: what is judged is the file that was opened, and the same open file is returned.
    """
    file = _open_remote(path, root) if isinstance(root, RemotePath) else _open_regular(path)
    try:
        if not isinstance(root, RemotePath):
            _check_place(file, path, root, collection)
        _check_content(file, path, content_hash)
    except BaseException:
        file.close()
        raise
    return file


def is_below(path: Path, root: Path) -> bool:
    """Return True if a file lies below the root after all links are followed."""
    if is_remote(root) or is_remote(path):
        return is_remote(path) and ".." not in path.parts and path.is_relative_to(root)
    return Path(os.path.realpath(split_moment(path)[0])).is_relative_to(os.path.realpath(root))


def has_content(file: BinaryIO, path: Path, content_hash: str | None) -> bool:
    """Return True if an open file holds the recorded content; ``path`` says which moment of a video it stands for."""
    found, seconds = _digest_of(file), split_moment(path)[1]
    if seconds is not None:
        found = hashlib.sha256(f"{found}#t={seconds:.3f}".encode()).hexdigest()
    return found == content_hash


def _open_remote(path: Path, root: Path) -> BinaryIO:
    if not is_below(path, root):
        raise _outside()
    try:
        return split_moment(path)[0].open("rb")
    except (OSError, InvalidInputError):
        raise _gone() from None


def _open_regular(path: Path) -> BinaryIO:
    try:
        # A file that has become a pipe must not keep the opener waiting.
        handle = os.open(split_moment(path)[0], os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        raise _gone() from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _gone()
    return os.fdopen(handle, "rb")


def _gone() -> OriginalError:
    return OriginalError("original-gone", "is gone or cannot be read; index its folder again")


def _outside() -> OriginalError:
    return OriginalError("outside-the-collection", "lies outside the folder of pictures and is not handed out")


def _check_place(file: BinaryIO, path: Path, root: Path, collection: Path) -> None:
    real = Path(os.path.realpath(split_moment(path)[0]))
    try:
        is_same = os.path.samestat(os.lstat(real), os.fstat(file.fileno()))
    except OSError:
        is_same = False
    is_inside = real.is_relative_to(os.path.realpath(root)) and not real.is_relative_to(os.path.realpath(collection))
    if not (is_same and is_inside) or _is_private(real):
        raise _outside()


def _check_content(file: BinaryIO, path: Path, content_hash: str | None) -> None:
    from diptych.encoders.image.picture_formats import PICTURE_FORMATS, picture_format

    if picture_format(file) not in (*PICTURE_FORMATS, "video"):
        raise OriginalError("no-picture", "is neither a picture nor a video")
    if not has_content(file, path, content_hash):
        raise OriginalError("original-changed", "has changed since it was indexed; index its folder again")
    file.seek(0)


def _digest_of(file: BinaryIO) -> str:
    """Return the SHA-256 of an open file; it is kept while the file stays the same, for ranges of long videos."""
    if isinstance(file, io.BytesIO):
        return hashlib.sha256(file.getbuffer()).hexdigest()
    about = os.fstat(file.fileno())
    stamp = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    if stamp not in _digests:
        if len(_digests) >= MAX_KEPT_DIGESTS:
            _digests.clear()
        digest = hashlib.sha256()
        file.seek(0)
        while block := file.read(1 << 20):
            digest.update(block)
        _digests[stamp] = digest.hexdigest()
    return _digests[stamp]


def _is_private(real: Path) -> bool:
    """Return True for the state folder, where the service keeps its token, and for hidden folders of the home."""
    if real.is_relative_to(os.path.realpath(state_folder())):
        return True
    home = Path(os.path.realpath(Path.home()))
    below = real.relative_to(home).parts if real.is_relative_to(home) else ()
    if not below or not below[0].startswith("."):
        return False
    # Data sets and their pictures lie in the user's cache.
    data = (Path(os.path.realpath(folder)) for folder in (cache_folder(), data_folder()))
    return not any(folder in real.parents for folder in data)


def _trust_file() -> Path:
    return state_folder() / "trusted-roots"


def _line(collection: str | os.PathLike[str], root: str | os.PathLike[str]) -> str:
    place = str(full_path(root)) if is_remote(root) else os.path.realpath(root)
    return json.dumps([os.path.realpath(collection), place])
