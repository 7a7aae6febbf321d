"""What people keep of a collection: saved searches and albums, in one small file, and albums as a filter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from diptych.atomic_files import read_json, write_json
from diptych.collection.browse.filter import Filter, compare
from diptych.collection.storage.layout import LONGEST_NAME
from diptych.errors import CollectionError, InvalidInputError, UnknownNameError

SAVED_FILE = "saved.json"
"""The file of a collection that holds saved searches and albums; it is replaced whole, so no reader sees half of it."""
_FORMAT = 1


@dataclass(frozen=True)
class SavedSearch:
    """A search under a name, asked anew each time: words of the query language, a filter, or both, and how to search.

    ``mode`` is auto, similarity, words or both; without a ``retriever`` it is the one in force at that time.

    >>> from diptych.collection import SavedSearch
    >>> SavedSearch("Dogs outside", "a dog - sofa", filter="year>=2020").mode
    'auto'
    """

    name: str
    query: str = ""
    filter: str | None = None
    target: Literal["images", "texts"] = "images"
    mode: Literal["auto", "similarity", "words", "both"] = "auto"
    retriever: str | None = None
    min_probability: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", checked_name(self.name))
        object.__setattr__(self, "query", self.query.strip())
        if not self.query and self.filter is None:
            raise InvalidInputError("a saved search has words, a filter or both; give one of them")
        Filter.of(self.filter)


@dataclass(frozen=True)
class Album:
    """Items under a title, in an order of one's own; ``ids`` has those that are in the collection."""

    title: str
    ids: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Saved:
    """Everything that is saved in a collection."""

    searches: tuple[SavedSearch, ...] = ()
    albums: tuple[Album, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Saved:
        """Read what is saved in the folder of a collection."""
        path = folder / SAVED_FILE
        try:
            document = read_json(path)
            searches = tuple(SavedSearch(**entry) for entry in document["searches"])
            return cls(searches, tuple(Album(entry["title"], tuple(entry["ids"])) for entry in document["albums"]))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise CollectionError(f"{path} cannot be read ({problem}); restore it from a backup") from None

    def write(self, folder: Path) -> None:
        """Replace what is saved; the caller is the only writer."""
        write_json(folder / SAVED_FILE, {"format": _FORMAT, **asdict(self)})


def checked_name(name: str) -> str:
    """Return the name of a saved search or the title of an album, fit for lists and addresses.

    >>> checked_name("  Summer   2024 ")
    'Summer 2024'
    """
    plain = " ".join(name.split())
    if not plain or len(plain) > LONGEST_NAME or "/" in plain or not plain.isprintable():
        raise InvalidInputError(
            f"a name has 1 to {LONGEST_NAME} letters and signs, without a slash, got {name!r}; choose another one"
        )
    return plain


Kept = TypeVar("Kept", SavedSearch, Album)


def named(kept: Iterable[Kept], name: str) -> Kept | None:
    """Return what has a name, whatever its capitals, or None."""
    wanted = " ".join(name.split()).casefold()
    return next((one for one in kept if _name_of(one).casefold() == wanted), None)


def known(kept: Iterable[Kept], name: str, kind: str) -> Kept:
    """Return what has a name; a typo gets a suggestion."""
    every = tuple(kept)
    found = named(every, name)
    if found is None:
        raise UnknownNameError(kind, name, [_name_of(one) for one in every])
    return found


def _name_of(kept: SavedSearch | Album) -> str:
    return kept.title if isinstance(kept, Album) else kept.name


def chosen_items(wanted: Filter | str | None, folder: Path) -> Filter | None:
    """Return a filter, or that of a text, whose conditions on albums know the items of these."""
    chosen = Filter.of(wanted)
    if chosen is None or not any(field.lower() == "album" for field in chosen.fields):
        return chosen
    return _with_members(chosen, Saved.read(folder).albums)


def _with_members(wanted: Filter, albums: tuple[Album, ...]) -> Filter:
    if wanted.parts:
        return replace(wanted, parts=tuple(_with_members(part, albums) for part in wanted.parts))
    if wanted.field.lower() != "album":
        return wanted
    if wanted.operator == "!=":
        return ~_with_members(replace(wanted, operator="="), albums)
    meant = [album for album in albums if compare(album.title, wanted.operator, wanted.value, whole=True)]
    if not meant:
        # Who asks for an album that is not there hears of it, instead of finding nothing.
        raise UnknownNameError("album", wanted.value, [album.title for album in albums])
    members: Any = frozenset().union(*(album.ids for album in meant))
    return replace(wanted, members=members)
