"""Which collection a command means, and where a new one goes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from diptych.cli.files import writing
from diptych.data.folders import cache_folder
from diptych.errors import InvalidInputError

FOLDER_NAME = ".diptych"
VARIABLE = "DIPTYCH_COLLECTION"
_MARK = "collection.json"


class Place(NamedTuple):
    """A folder, and how it was found; ``reason`` is empty when it was named."""

    folder: Path
    reason: str = ""


def find_collection(named: Path | None) -> Place:
    """Return the collection a command means.

    In this order: the one that was named, ``DIPTYCH_COLLECTION``, ``.diptych`` in the current folder or the nearest
    folder above, the one indexed last.
    """
    if named is not None:
        return Place(_existing(named, f"index it with: diptych index FOLDER --collection {named}"))
    variable = os.environ.get(VARIABLE)
    if variable:
        return Place(_existing(Path(variable).expanduser(), f"set {VARIABLE} to a collection, or unset it"))
    here = Path.cwd()
    for folder in (here, *here.parents):
        if is_collection(folder / FOLDER_NAME):
            return Place(folder / FOLDER_NAME, "" if folder == here else f"found above, in {folder}")
    last = last_collection()
    if last is not None:
        return Place(last, "indexed last")
    raise InvalidInputError("there is no collection yet; make one of your pictures with: diptych index FOLDER")


def new_collection(pictures: Path, named: Path | None) -> Place:
    """Return where the collection of a folder of pictures is or goes.

    That is the folder that was named, or ``.diptych`` inside the pictures; if nothing can be written there, a folder of
    the user's cache, named after the pictures.
    """
    if named is not None:
        if named.exists() and not named.is_dir():
            raise InvalidInputError(f"{named} is a file; name a folder with --collection")
        # Also the folder of the pictures itself may be named: the collection is then found in it.
        return Place(named / FOLDER_NAME if is_collection(named / FOLDER_NAME) else named)
    inside = pictures / FOLDER_NAME
    if _is_writable(inside if os.path.isdir(inside) else pictures):
        return Place(inside)
    digest = hashlib.sha256(os.fsencode(pictures.resolve())).hexdigest()[:8]
    folder = cache_folder() / "collections" / f"{pictures.resolve().name or 'pictures'}-{digest}"
    return Place(folder, f"{pictures} cannot be written to")


def is_collection(folder: Path) -> bool:
    """Say whether a folder holds a collection."""
    # What may not be looked at is none of ours; pathlib would raise.
    return os.path.isfile(folder / _MARK)


def remember(folder: Path) -> None:
    """Make a collection the one that commands mean when nothing else tells."""
    note = _note()
    with writing(note):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_bytes(os.fsencode(folder.resolve()))


def last_collection() -> Path | None:
    """Return the collection that was indexed last, if it is still there."""
    try:
        folder = Path(os.fsdecode(_note().read_bytes()))
    except OSError:
        return None
    return folder if is_collection(folder) else None


def _is_writable(folder: Path) -> bool:
    """Try it out: permissions say nothing about disks that are read-only."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _note() -> Path:
    return cache_folder() / "last-collection"


def _existing(folder: Path, remedy: str) -> Path:
    if is_collection(folder):
        return folder
    if is_collection(folder / FOLDER_NAME):
        return folder / FOLDER_NAME
    state = "is no collection" if folder.exists() else "does not exist"
    raise InvalidInputError(f"{folder} {state}; {remedy}")
