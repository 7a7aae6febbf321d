"""Paths as people read them, and where the collection is that a command means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from diptych.addresses import is_address, without_password
from diptych.cli.console.output import notes, writing
from diptych.data.remote_files import is_remote
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Collection

FOLDER_NAME = ".diptych"
VARIABLE = "DIPTYCH_COLLECTION"
_COLLECTION_FILE = "collection.sqlite"


def shown_path(path: Path | str) -> str:
    """Return the shortest form of a path that works from the current folder; an address without its password.

    >>> from pathlib import Path
    >>> shown_path(Path.cwd() / "photos" / "1.jpg"), shown_path(Path("/elsewhere/2.jpg"))
    ('photos/1.jpg', '/elsewhere/2.jpg')
    """
    if isinstance(path, str):
        return without_password(path)
    here = Path.cwd()
    return os.fspath(path.relative_to(here) if path.is_relative_to(here) else path)


def printable(text: str) -> str:
    """Return a text on one line without control characters, which file names may hold and terminals obey.

    >>> printable("a\\nb\\x1b[31m")
    'a�b�[31m'
    """
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


class CollectionLocation(NamedTuple):
    """A folder or an address of PostgreSQL, and how it was found; ``reason`` is empty when it was named."""

    place: Path | str
    reason: str = ""


def find_collection(named: Path | str | None) -> CollectionLocation:
    """Return the collection a command means: the named one, the variable's, the nearest here or above, or the last.

    Whether there is one at an address, opening it says.
    """
    if named is not None:
        return CollectionLocation(_existing(named, f"index it with: diptych index FOLDER --collection {named}"))
    variable = os.environ.get(VARIABLE)
    if variable:
        return CollectionLocation(_existing(variable, f"set {VARIABLE} to a collection, or unset it"))
    here = Path.cwd()
    for folder in (here, *here.parents):
        if is_collection(folder / FOLDER_NAME):
            return CollectionLocation(folder / FOLDER_NAME, "" if folder == here else f"found above, in {folder}")
    last = last_collection()
    if last is not None:
        return CollectionLocation(last, "indexed last")
    raise InvalidInputError("there is no collection yet; make one of your pictures with: diptych index FOLDER")


def new_collection(pictures: Path, named: Path | str | None) -> CollectionLocation:
    """Return where the collection of a folder is or goes: the named one, inside the pictures, or the user's cache."""
    import hashlib

    from diptych.data.folders import cache_folder

    if named is not None:
        named = place_of(named)
        if isinstance(named, str):
            return CollectionLocation(named)
        if named.exists() and not named.is_dir():
            raise InvalidInputError(f"{named} is a file; name a folder with --collection")
        # Also the folder of the pictures itself may be named: the collection is then found in it.
        return CollectionLocation(named / FOLDER_NAME if is_collection(named / FOLDER_NAME) else named)
    if is_remote(pictures):
        raise InvalidInputError(
            f"the collection of {pictures} needs a place of its own; name a folder or an address of PostgreSQL with "
            "--collection"
        )
    inside = pictures / FOLDER_NAME
    if _is_writable(inside if os.path.isdir(inside) else pictures):
        return CollectionLocation(inside)
    digest = hashlib.sha256(os.fsencode(pictures.resolve())).hexdigest()[:8]
    folder = cache_folder() / "collections" / f"{pictures.resolve().name or 'pictures'}-{digest}"
    return CollectionLocation(folder, f"{pictures} cannot be written to")


def place_of(named: Path | str) -> Path | str:
    """Return a place as a user names it: an address of PostgreSQL as it is, otherwise a path."""
    return str(named) if is_address(named) else Path(named).expanduser()


def is_collection(place: Path | str) -> bool:
    """Return True if there is a collection in a folder or at an address; one in object storage is refused."""
    if is_address(place):
        # Imported lazily: folders do not need the store to be looked at.
        from diptych.collection.store import opening

        return opening.is_collection(place)
    # What may not be looked at is none of ours; pathlib would raise.
    return os.path.isfile(Path(place) / _COLLECTION_FILE)


def remember(place: Path | str) -> None:
    """Make a collection the one that commands mean when nothing else tells; passwords are not remembered."""
    note = _last_collection_file()
    with writing(note):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_bytes(os.fsencode(without_password(place) if is_address(place) else Path(place).resolve()))


def last_collection() -> Path | str | None:
    """Return the collection that was indexed last; a folder only if it is still one."""
    try:
        place = place_of(os.fsdecode(_last_collection_file().read_bytes()))
    except OSError:
        return None
    return place if isinstance(place, str) or is_collection(place) else None


def _is_writable(folder: Path) -> bool:
    """Try it out: permissions say nothing about disks that are read-only."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _last_collection_file() -> Path:
    from diptych.data.folders import cache_folder

    return cache_folder() / "last-collection"


def _existing(named: Path | str, remedy: str) -> Path | str:
    folder = place_of(named)
    if isinstance(folder, str) or is_collection(folder):
        return folder
    if is_collection(folder / FOLDER_NAME):
        return folder / FOLDER_NAME
    state = "is no collection" if folder.exists() else "does not exist"
    raise InvalidInputError(f"{folder} {state}; {remedy}")


def open_collection(named: Path | str | None, *, quiet: bool = False, scheduler: str | None = None) -> Collection:
    """Open the collection that was named or that is meant, and say which when that is not obvious."""
    from diptych.collection import Collection

    place = find_collection(named)
    if place.reason and not quiet:
        notes().print(f"collection: {shown_path(place.place)} ({place.reason})", soft_wrap=True)
    return Collection.open(place.place, scheduler=scheduler)
