"""Which collections are served, and under which names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from diptych.cli.collection_place import find_collection, is_collection, new_collection
from diptych.cli.indexing import IndexRequest, index_folder
from diptych.cli.shown_path import shown_path
from diptych.cli.stages import Stages
from diptych.collection.layout import Layout
from diptych.errors import InvalidInputError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_UNNAMED = "collection"


def served_collections(
    folders: Sequence[Path], names: Sequence[str], *, index: bool = False, quiet: bool = False
) -> dict[str, Path]:
    """Return the folder of each collection by the name that addresses use."""
    if index and not folders:
        raise InvalidInputError("--index needs to know what to index; name the folder of pictures")
    places = [_place(folder, index=index, quiet=quiet) for folder in folders] or [find_collection(None).folder]
    if names and len(names) != len(places):
        raise InvalidInputError(f"--name is given {len(names)} times for {len(places)} collections; give it for each")
    for name in names:
        if not _NAME.fullmatch(name):
            raise InvalidInputError(f"--name {name!r} is no name for an address; use letters, digits, '.', '_' and '-'")
    if len(set(names)) < len(names):
        raise InvalidInputError("--name is given twice with the same name; give each collection its own")
    chosen = list(names) or unique_names(Layout.read(place).root_folder.name for place in places)
    return dict(zip(chosen, (place.absolute() for place in places), strict=True))


def unique_names(names: Iterable[str]) -> list[str]:
    """Return names for addresses: plain letters, and no two alike.

    >>> from diptych.cli.serve_places import unique_names
    >>> unique_names(["Été 2010", "photos", "photos", "写真"])
    ['Ete-2010', 'photos', 'photos-2', 'collection']
    """
    taken: list[str] = []
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")[:48] or _UNNAMED
        candidates = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(taken) + 2))
        taken.append(next(candidate for candidate in candidates if candidate not in taken))
    return taken


def _place(folder: Path, *, index: bool, quiet: bool) -> Path:
    if is_collection(folder):
        return folder
    place = new_collection(folder, None).folder if folder.is_dir() else folder
    if index:
        return index_folder(IndexRequest(folder), Stages(quiet=quiet)).folder
    if not is_collection(place):
        state = "is no collection yet" if folder.exists() else "does not exist"
        remedy = f"make it one with: diptych index {shown_path(folder)}, or with --index"
        raise InvalidInputError(f"{folder} {state}; {remedy if folder.exists() else 'name a folder of pictures'}")
    return place
