"""Every error that Diptych raises on purpose, each with a message that names the fix."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any


class DiptychError(Exception):
    """Base of all errors that Diptych raises on purpose."""


class InvalidInputError(DiptychError, ValueError):
    """The data or a parameter cannot be used as given."""


class UnknownNameError(DiptychError, LookupError):
    """A method, data set or space of that name does not exist.

    The message lists close matches, so that a typo costs one look:

    >>> from diptych.errors import UnknownNameError
    >>> print(UnknownNameError("method", "kkca", ["cca", "kcca", "scm"]))
    unknown method 'kkca'; did you mean 'kcca'? Known: cca, kcca, scm
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, besides: str = "") -> None:
        names = sorted(known)
        by_lower_case = {known_name.lower(): known_name for known_name in names}
        close = [by_lower_case[match] for match in get_close_matches(name.lower(), by_lower_case, n=3, cutoff=0.6)]
        guess = f"did you mean {' or '.join(repr(match) for match in close)}? " if close else ""
        others = f", or {besides}" if besides else ""
        super().__init__(f"unknown {kind} {name!r}; {guess}Known: {', '.join(names)}{others}")


class NoMemoryError(DiptychError, MemoryError):
    """There is not enough memory for what was asked; the message says how to need less."""


class MissingDataError(DiptychError, FileNotFoundError):
    """A data set is not on this machine; the message says where to get it."""


class ModelFileError(DiptychError):
    """A model folder is missing, truncated, altered, foreign or of an unsupported version."""


class MissingPackageError(DiptychError, ImportError):
    """An optional package is not installed; the message gives the command that installs it.

    >>> from diptych.errors import MissingPackageError
    >>> print(MissingPackageError("searching", "faiss-cpu"))
    searching needs a package that is not installed: pip install faiss-cpu
    """

    def __init__(self, purpose: str, requirement: str, installer: str = "pip install") -> None:
        super().__init__(f"{purpose} needs a package that is not installed: {installer} {requirement}")


def import_package(module: str, purpose: str, requirement: str) -> Any:
    """Return a module of an optional package; without it, the error says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(purpose, requirement) from error


class CollectionError(DiptychError):
    """A collection is missing, foreign, of another version, being written by another process, or has no such item.

    >>> from diptych.collection import Collection, CollectionError
    >>> try:
    ...     Collection.open("no/such/folder")
    ... except CollectionError as error:
    ...     print(error)
    no/such/folder is not a collection: collection.sqlite is missing; make one with Collection.create or `diptych index`
    """


class CollectionBusyError(CollectionError):
    """Another process or thread writes to the collection; the same call may work a little later."""


class NoRoomError(CollectionError):
    """The disk of a collection is full; nothing of what was to be written is stored.

    ``missing`` is how many bytes have to be freed, at least.

    >>> from diptych.errors import NoRoomError
    >>> print(NoRoomError("/photos/.diptych", 4096))
    there is no room left for /photos/.diptych: free 4,096 bytes, or remove items, and try again
    """

    def __init__(self, where: object, missing: int) -> None:
        super().__init__(
            f"there is no room left for {where}: free {counted(missing, 'byte')}, or remove items, and try again"
        )
        self.missing = missing


class UntrustedRootError(CollectionError):
    """A collection was made elsewhere, and this user has not named the folder of its pictures."""


class UnknownItemError(CollectionError):
    """A collection has no item of that id or path."""


class UnsearchableItemError(CollectionError):
    """An item has nothing to search with: neither a readable picture nor a caption."""


class ActiveRetrieverError(CollectionError):
    """The retriever that searches use cannot be removed."""


class UnknownRetrieverError(CollectionError):
    """A collection has no retriever of that name.

    >>> from diptych.collection import CollectionError, UnknownRetrieverError
    >>> issubclass(UnknownRetrieverError, CollectionError)
    True
    """


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, as messages and reports write it.

    >>> from diptych.errors import counted
    >>> counted(1, "class", "classes"), counted(2000, "label")
    ('1 class', '2,000 labels')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


_PART = r"[^/\\\s:;,'\"()<>]"
_DATABASE_ADDRESS = re.compile(r"postgres(?:ql)?://[^\s,;)]+")
_ABSOLUTE_PATH = re.compile(rf"(?<![\w.:/])(?!/v1/)(?:[A-Za-z]:)?(?:[/\\]{_PART}+)+[/\\]({_PART}*)")


def without_folders(text: str, *folders: object) -> str:
    """Return a message without the folders of this machine, which are none of a client's business; names stay.

    >>> without_folders("/home/me/my photos/a.jpg: no room in /tmp/x/y.part", "/home/me/my photos")
    'a.jpg: no room in y.part'
    """
    for folder in folders:
        text = text.replace(f"{folder}/", "").replace(str(folder), "the folder")
    return _ABSOLUTE_PATH.sub(r"\1", _DATABASE_ADDRESS.sub("the database", text))
