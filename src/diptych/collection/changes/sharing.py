"""Saved searches and albums of a collection: listed, run, changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.collection.browse.filter import Filter
from diptych.collection.browse.live_items import LiveItems
from diptych.collection.browse.saved import Album, Saved, SavedSearch, checked_name, known, named
from diptych.collection.search.live_state import LiveState
from diptych.collection.search.query import HYBRID_OF_MODE, Answers, Query, parse_query
from diptych.collection.storage.item import Item
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection.changes.item_changes import Which


class SavedSearches:
    """The saved searches of a collection, in the order in which they were saved; each run asks anew.

    ``for one in collection.saved_searches`` goes over them, ``collection.saved_searches["Dogs"]`` is one of them.
    """

    def __init__(self, state: LiveState, search: Callable[..., Answers]) -> None:
        self._state = state
        self._search = search

    def __iter__(self) -> Iterator[SavedSearch]:
        return iter(_read(self._state).searches)

    def __contains__(self, name: str) -> bool:
        return named(self, name) is not None

    def __getitem__(self, name: str) -> SavedSearch:
        return known(self, name, "saved search")

    def save(self, search: SavedSearch) -> SavedSearch:
        """Save a search; one of the same name is replaced."""
        if search.query:
            _query(search)
        with self._state.writing():
            saved, old = _read(self._state), named(self, search.name)
            kept = [search if one == old else one for one in saved.searches]
            self._write(saved, kept if old else [*kept, search])
        return search

    def rename(self, name: str, new: str) -> SavedSearch:
        """Give a saved search another name, which must be free."""
        with self._state.writing():
            saved, old = _read(self._state), self[name]
            _check_free(new, named(self, new), old, "saved search")
            renamed = replace(old, name=new)
            self._write(saved, [renamed if one == old else one for one in saved.searches])
        return renamed

    def delete(self, name: str) -> None:
        """Forget a saved search."""
        with self._state.writing():
            saved, old = _read(self._state), self[name]
            self._write(saved, [one for one in saved.searches if one != old])

    def run(self, name: str, k: int = 10, *, offset: int = 0) -> Answers:
        """Ask a saved search now."""
        search = self[name]
        if not search.query:
            raise InvalidInputError(
                f"the saved search {search.name!r} is a filter without words; list its items: {search.filter}"
            )
        how = {"target": search.target, "retriever": search.retriever, "min_probability": search.min_probability}
        return self._search(
            _query(search), k, offset=offset, filter=search.filter, hybrid=HYBRID_OF_MODE[search.mode], **how
        )

    def _write(self, saved: Saved, searches: list[SavedSearch]) -> None:
        replace(saved, searches=tuple(searches)).write(self._state.layout.folder)


class Albums:
    """The albums of a collection, each with those of its items that are in the collection now.

    ``for album in collection.albums`` goes over them, ``collection.albums["Summer"]`` is one of them, and a filter asks
    for the items of one: ``album:Summer``.
    """

    def __init__(self, state: LiveState) -> None:
        self._state = state

    def __iter__(self) -> Iterator[Album]:
        items = self._state.items()
        return (_present(album, items) for album in _read(self._state).albums)

    def __contains__(self, title: str) -> bool:
        return named(_read(self._state).albums, title) is not None

    def __getitem__(self, title: str) -> Album:
        return _present(known(_read(self._state).albums, title, "album"), self._state.items())

    def items(self, title: str) -> list[Item]:
        """Return the items of an album in its order."""
        items = self._state.items()
        found = (items.get(item_id) for item_id in self[title].ids)
        return [item for item in found if item is not None]

    def add(self, title: str, which: Which = ()) -> Album:
        """Put items at the end of an album, by id, path or filter; an album that is not there yet is made."""
        return self._change(title, lambda ids, new: [*ids, *new], which, makes=True)

    def remove(self, title: str, which: Which) -> Album:
        """Take items out of an album; they stay in the collection."""
        return self._change(title, lambda ids, gone: [one for one in ids if one not in set(gone)], which)

    def set(self, title: str, which: Which) -> Album:
        """Let an album have these items, in this order; one that is not there yet is made."""
        return self._change(title, lambda _, new: new, which, makes=True)

    def rename(self, title: str, new: str) -> Album:
        """Give an album another title, which must be free."""
        with self._state.writing():
            saved, plain = _read(self._state), checked_name(new)
            old = known(saved.albums, title, "album")
            _check_free(plain, named(saved.albums, plain), old, "album")
            self._write(saved, [replace(one, title=plain) if one == old else one for one in saved.albums])
        return self[plain]

    def delete(self, title: str) -> None:
        """Forget an album; its items stay in the collection."""
        with self._state.writing():
            saved = _read(self._state)
            old = known(saved.albums, title, "album")
            self._write(saved, [one for one in saved.albums if one != old])

    def _change(
        self, title: str, change: Callable[[list[str], list[str]], list[str]], which: Which, *, makes: bool = False
    ) -> Album:
        from diptych.collection.changes.item_changes import ItemChanges

        with self._state.writing():
            saved, plain = _read(self._state), checked_name(title)
            old = named(saved.albums, plain)
            if old is None and not makes:
                known(saved.albums, plain, "album")
            meant = [item.id for item in ItemChanges(self._state).named(which)]
            items = self._state.items()
            before = [] if old is None else list(_present(old, items).ids)
            album = Album(plain if old is None else old.title, tuple(dict.fromkeys(change(before, meant))))
            others = [album if one == old else one for one in saved.albums]
            self._write(saved, others if old else [*others, album])
        return album

    def _write(self, saved: Saved, albums: list[Album]) -> None:
        replace(saved, albums=tuple(albums)).write(self._state.layout.folder)


def _read(state: LiveState) -> Saved:
    state.check_layout()
    return Saved.read(state.layout.folder)


def _query(search: SavedSearch) -> Query:
    """Return what a saved search asks; it names no files, which another machine may not have."""
    return parse_query(search.query, find_picture=lambda _: None)


def _check_free(new: str, holder: Any, old: Any, kind: str) -> None:
    if holder is not None and holder != old:
        raise InvalidInputError(f"there is a {kind} {new!r} already; choose another name, or delete that one first")


def _present(album: Album, items: LiveItems) -> Album:
    """Return an album with those of its items that are there."""
    members = Filter(":", field="album", value=album.title, members=frozenset(album.ids))
    there = {
        name
        for part, mask in zip(items.parts, items.masks(members), strict=True)
        for name in part.segment.names(np.flatnonzero(mask)).tolist()
    }
    return replace(album, ids=tuple(one for one in album.ids if one in there))
