"""The folder of a collection: the small file that says what is valid in it, and its paths."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from diptych._version import __version__
from diptych.atomic_files import read_json, write_json
from diptych.collection.trusted_root import untrusted_root
from diptych.data.picture_files import split_moment
from diptych.errors import CollectionError, MissingPackageError, UnknownRetrieverError


@dataclass(frozen=True)
class RetrieverNames:
    """A saved retriever: its folder, what people call it, and the fingerprints of it and of its encoders."""

    saved: str
    name: str
    fingerprint: str
    image_fingerprint: str
    text_fingerprint: str


LONGEST_NAME = 80


def unique_name(name: str, taken: Collection[str]) -> str:
    """Return the name fit for addresses and lists, with a number where it is taken.

    >>> unique_name("trained", ["trained", "trained 2"]), unique_name("my/model", [])
    ('trained 3', 'my model')
    """
    letters = (letter if letter.isprintable() and letter != "/" else " " for letter in name)
    plain = " ".join("".join(letters).split())[:LONGEST_NAME].strip() or "retriever"
    free, number = plain, 1
    while free in taken:
        number += 1
        free = f"{plain} {number}"
    return free


# For so long what was changed or removed can be searched as it was.
KEPT_DAYS = 30.0
FORMAT = "diptych-collection"
FORMAT_VERSION = 4


@dataclass(frozen=True)
class Layout:
    """The paths of a collection, the root its pictures are named from, and the retrievers in force.

    Names and fingerprints are unique among ``retriever`` and ``further``, whose points are kept too. ``pending`` is one
    whose points are still being made; ``keep_old`` says that ``retriever`` stays beside it after the switch.
    ``unfinished`` has the fingerprints of those that never got all their points, ``resting`` those of earlier ones
    that are kept for a way back: what is added later gets their points only then. ``facts`` says what is kept of what
    photographs say of themselves, ``history_days`` for how long changed and removed items are kept.
    """

    folder: Path
    root: str
    retriever: RetrieverNames
    pending: RetrieverNames | None = None
    further: tuple[RetrieverNames, ...] = ()
    unfinished: frozenset[str] = frozenset()
    keep_old: bool = False
    resting: frozenset[str] = frozenset()
    facts: str = "all"
    history_days: float = KEPT_DAYS

    @property
    def store(self) -> Path:
        """The durable tables."""
        return self.folder / "store"

    @property
    def index(self) -> Path:
        """Search indexes; deleting the folder costs time, nothing else."""
        return self.folder / "index"

    @property
    def retrievers(self) -> Path:
        """Saved retrievers: the one in force, the pending one, and older ones until the next repair."""
        return self.folder / "retrievers"

    @property
    def last_run(self) -> Path:
        """What the last run could not read."""
        return self.folder / "last_run.json"

    @property
    def last_status(self) -> Path:
        """How the collection was when it was last looked at; deleting the file costs time, nothing else."""
        return self.folder / "last_status.json"

    @property
    def reserve(self) -> Path:
        """Room that is given back when the disk is full, for what makes room."""
        return self.folder / "reserve"

    @property
    def click_log(self) -> Path:
        """What people searched and clicked, which the service keeps."""
        return self.folder / "service" / "clicks.sqlite"

    @property
    def root_folder(self) -> Path:
        """The folder that stored paths are relative to, absolute."""
        return Path(os.path.abspath(self.folder / self.root))

    def saved_retriever(self, names: RetrieverNames) -> Path:
        """The folder a retriever is saved in."""
        return self.retrievers / names.saved

    def write(self) -> None:
        """Replace ``collection.json`` in one step."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "diptych": __version__,
            "root": self.root,
            "retriever": asdict(self.retriever),
            "pending": None if self.pending is None else asdict(self.pending),
            "further": [asdict(names) for names in self.further],
            "unfinished": sorted(self.unfinished),
            "keep_old": self.keep_old,
            "resting": sorted(self.resting),
            "facts": self.facts,
            "history_days": self.history_days,
        }
        write_json(self.folder / "collection.json", document)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read ``collection.json``; any defect is one clear error."""
        path = folder / "collection.json"
        try:
            document = read_json(path)
        except FileNotFoundError:
            raise CollectionError(
                f"{folder} is not a collection: collection.json is missing; "
                "make one with Collection.create or `diptych index`"
            ) from None
        except (OSError, ValueError) as problem:
            raise CollectionError(f"{path} cannot be read ({problem}); restore it from a backup") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise CollectionError(f"{path} was not written by Diptych: its format is not {FORMAT!r}")
        version, written_by = document.get("format_version"), document.get("diptych", "of that time")
        if version != FORMAT_VERSION:
            raise CollectionError(
                f"{path} has format version {version}, this Diptych {__version__} reads "
                f"{FORMAT_VERSION}: install Diptych {written_by} or index again"
            )
        try:
            return cls(
                folder,
                document["root"],
                RetrieverNames(**document["retriever"]),
                None if document["pending"] is None else RetrieverNames(**document["pending"]),
                tuple(RetrieverNames(**names) for names in document["further"]),
                frozenset(document["unfinished"]),
                bool(document["keep_old"]),
                frozenset(document["resting"]),
                str(document["facts"]),
                float(document["history_days"]),
            )
        except (KeyError, TypeError) as problem:
            raise CollectionError(f"{path} is incomplete ({problem}); restore it from a backup") from None

    @property
    def stored(self) -> tuple[RetrieverNames, ...]:
        """Every retriever that searches may use, the active one first."""
        return (self.retriever, *self.further)

    @property
    def followed(self) -> tuple[RetrieverNames, ...]:
        """Every retriever that new items get points of."""
        return tuple(names for names in self.stored if names.fingerprint not in self.resting)

    @property
    def in_force(self) -> tuple[RetrieverNames, ...]:
        """Every retriever whose points are kept, the pending one included."""
        return self.stored if self.pending is None else (*self.stored, self.pending)

    def named(self, name: str | None) -> RetrieverNames:
        """Return a stored retriever by name; None is the active one."""
        for names in self.stored:
            if name in (None, names.name):
                return names
        known = ", ".join(repr(names.name) for names in self.stored)
        raise UnknownRetrieverError(f"there is no retriever {name!r} in {self.folder}; stored are {known}")

    def with_fingerprint(self, fingerprint: str) -> RetrieverNames | None:
        """Return the stored retriever that makes these points, or None."""
        return next((names for names in self.stored if names.fingerprint == fingerprint), None)

    def switched(self) -> Layout:
        """Return the layout after the pending retriever has taken over."""
        if self.pending is None:
            raise CollectionError("no retriever is pending; call set_retriever first")
        new = self.pending.fingerprint
        others = tuple(names for names in self.further if names.fingerprint != new)
        others = (*others, self.retriever) if self.keep_old else others
        # Another retriever may have been activated or added under that name since the change was begun.
        name = unique_name(self.pending.name, [names.name for names in others])
        return replace(
            self,
            retriever=replace(self.pending, name=name),
            pending=None,
            further=others,
            unfinished=self.unfinished - {new},
            keep_old=False,
            resting=(self.resting | {self.retriever.fingerprint} if self.keep_old else self.resting) - {new},
        )

    def with_further(self, names: RetrieverNames) -> Layout:
        """Return the layout with one more retriever, whose points are yet to be made."""
        return replace(self, further=(*self.further, names), unfinished=self.unfinished | {names.fingerprint})

    def finished(self, names: RetrieverNames) -> Layout:
        """Return the layout after a retriever has got its points."""
        own = {names.fingerprint}
        return replace(self, unfinished=self.unfinished - own, resting=self.resting - own)

    def saved_again(self, names: RetrieverNames) -> Layout:
        """Return the layout with another saved form of a stored retriever that makes the same points."""
        if names.fingerprint == self.retriever.fingerprint:
            return replace(self, retriever=names)
        further = tuple(names if old.fingerprint == names.fingerprint else old for old in self.further)
        return replace(self, further=further)

    def activated(self, chosen: RetrieverNames) -> Layout:
        """Return the layout with a stored retriever in force; the one before stays beside it."""
        others = tuple(names for names in self.stored if names.fingerprint != chosen.fingerprint)
        layout = replace(self, retriever=chosen, further=others)
        reached = self.pending is not None and self.pending.fingerprint == chosen.fingerprint
        return replace(layout, pending=None, keep_old=False) if reached else layout

    def without(self, removed: RetrieverNames) -> Layout:
        """Return the layout without one of the further retrievers."""
        others = tuple(names for names in self.further if names.fingerprint != removed.fingerprint)
        own = {removed.fingerprint}
        return replace(self, further=others, unfinished=self.unfinished - own, resting=self.resting - own)


def stamp_of_layout(path: str) -> tuple[int, int]:
    """Return what changes whenever ``collection.json`` does."""
    # The file is replaced, never rewritten, so its number changes with it.
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


def stored_root(root: Path, folder: Path) -> str:
    """Return the root as seen from the collection when it is around it, else its full path."""
    root, folder = Path(os.path.abspath(root)), Path(os.path.abspath(folder))
    return os.path.relpath(root, folder) if folder.is_relative_to(root) else str(root)


def search_package(name: str) -> Any:
    """Return a module of the extra ``search``: ``lancedb``, ``pyarrow``, ``faiss`` or ``filelock``.

    >>> search_package("no_such_module")
    Traceback (most recent call last):
    diptych.errors.MissingPackageError: searching needs a package that is not installed: pip install 'diptych[search]'
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError("searching", "'diptych[search]'") from None


class Root:
    """The folder that stored paths are relative to, and whether files below it may be opened.

    ``untrusted_by`` is the collection whose user has not named the folder, so that nothing below it may be opened.

    >>> root = Root("/photos")
    >>> root.stored("/photos/a/b.jpg"), root.stored("/elsewhere/c.jpg"), str(root.file("a/b.jpg"))
    ('a/b.jpg', '/elsewhere/c.jpg', '/photos/a/b.jpg')
    """

    def __init__(self, folder: str | os.PathLike[str], untrusted_by: Path | None = None) -> None:
        self._untrusted_by = untrusted_by
        self.folder = Path(os.path.abspath(folder))
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
        # Every answer has one, and a path is made faster of one text than of two.
        is_inside = stored[:1] != "/" and ":" not in stored
        return Path(self._prefix + stored) if is_inside else self.folder / stored

    def picture(self, stored: str) -> Path:
        """Return the file of a stored path; of a moment, that of its video."""
        path = self.file(stored)
        return split_moment(path)[0] if "#" in stored else path

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
        """Return True if the file of a stored path is gone; one that merely cannot be reached is not."""
        name = os.path.join(self.folder, stored)
        try:
            # Paths are slow to make, and few are moments.
            os.stat(split_moment(name)[0] if "#" in stored else name)
        except OSError as problem:
            return isinstance(problem, (FileNotFoundError, NotADirectoryError))
        return False
