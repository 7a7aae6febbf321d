"""Finding the file that a caption file means."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath


class PictureIndex:
    """The pictures of a folder, found by whatever name a caption file gives them.

    A name is tried as a path below the folder, then as a path beside the caption file, and then by its base name
    alone: of the pictures of that base name, the one that shares most of the path's end is meant. Names are compared
    with composed accents (NFC), base names also without regard to case.

    >>> from pathlib import Path
    >>> from diptych.data.caption_files.picture_index import PictureIndex
    >>> index = PictureIndex(Path("photos"), [Path("photos/2010/boat.jpg"), Path("photos/cat.jpg")])
    >>> [path.as_posix() for path in index.find("elsewhere/boat.jpg")]
    ['photos/2010/boat.jpg']
    >>> index.find("dog.jpg")
    []
    """

    def __init__(self, folder: Path, pictures: Iterable[Path]) -> None:
        self.pictures: list[Path] = list(pictures)
        self._root = os.path.abspath(folder)
        self._by_name: dict[str, list[Path]] = {}
        self._by_base: dict[str, list[tuple[tuple[str, ...], Path]]] = {}
        self._exact: dict[str, Path] = {}
        self._found: dict[tuple[str, Path | None], Sequence[Path]] = {}
        for picture in self.pictures:
            name = picture.relative_to(folder).as_posix()
            composed = unicodedata.normalize("NFC", name)
            parts = tuple(composed.casefold().split("/"))
            self._exact[name] = picture
            self._by_name.setdefault(composed, []).append(picture)
            self._by_base.setdefault(parts[-1], []).append((parts, picture))

    def find(self, name: str, beside: Path | None = None) -> Sequence[Path]:
        """Return the pictures that ``name`` may mean: one if it is clear, none if there is no such picture.

        ``beside`` is the folder of the caption file.
        """
        # Tables name a picture once per caption.
        asked = name, beside
        if asked not in self._found:
            self._found[asked] = self._search(name.strip().replace("\\", "/"), beside)
        return self._found[asked]

    def _search(self, wanted: str, beside: Path | None) -> Sequence[Path]:
        for place in (self._root, None if beside is None else os.path.abspath(beside)):
            below = None if place is None else self._below_root(place, wanted)
            if below in self._exact:
                return [self._exact[below]]
            if below is not None and (found := self._by_name.get(unicodedata.normalize("NFC", below))):
                return found
        return self._with_longest_end(wanted)

    def _below_root(self, place: str, name: str) -> str | None:
        path = os.path.normpath(os.path.join(place, name))
        root = os.path.join(self._root, "")
        return PurePosixPath(path[len(root) :].replace(os.sep, "/")).as_posix() if path.startswith(root) else None

    def _with_longest_end(self, name: str) -> list[Path]:
        wanted = tuple(unicodedata.normalize("NFC", name).casefold().split("/"))
        candidates = self._by_base.get(wanted[-1], [])
        shared = [_common_end(wanted, parts) for parts, _ in candidates]
        return [path for (_, path), length in zip(candidates, shared, strict=True) if length == max(shared)]


def _common_end(first: Sequence[str], second: Sequence[str]) -> int:
    length = 0
    for one, other in zip(reversed(first), reversed(second), strict=False):
        if one != other:
            break
        length += 1
    return length
