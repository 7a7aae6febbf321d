"""Albums and saved searches: what people keep of a collection under names."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from diptych.collection.filter import Filter
from diptych.collection.item import Item
from diptych.collection.searching.options import SearchOptions
from diptych.collection.searching.query import HYBRID_OF_MODE, Answers, Query, SearchRequest, parse_query
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_id
from diptych.collection.store.models import LONGEST_NAME
from diptych.collection.store.store import Store, note_changes
from diptych.errors import InvalidInputError, UnknownNameError

Kept = TypeVar("Kept")


class _NamedRows(ABC, Generic[Kept]):
    """Rows with names that differ in more than capitals and blanks, in the order in which they were made."""

    table: str
    column: str
    kind: str

    def __init__(self, store: Store) -> None:
        self._store = store

    def __iter__(self) -> Iterator[Kept]:
        with self._store.reading() as db:
            return iter([self._read(db, *one) for one in self._names(db)])

    def __contains__(self, name: str) -> bool:
        with self._store.reading() as db:
            return self._number(db, name) is not None

    def __getitem__(self, name: str) -> Kept:
        with self._store.reading() as db:
            return self._read(db, *self._known(db, name))

    def delete(self, name: str) -> None:
        """Forget one; items stay in the collection."""

        def delete(db: Connection) -> None:
            db.run(f"DELETE FROM {self.table} WHERE id = ?", (self._known(db, name)[0],))
            note_changes(db, self.table)

        self._store.write(delete)

    @abstractmethod
    def _read(self, db: Connection, number: int, name: str) -> Kept:
        """Return what a row stands for."""

    def _names(self, db: Connection) -> list[tuple[int, str]]:
        rows = db.rows(f"SELECT id, {self.column} FROM {self.table} ORDER BY id")
        return [(int(number), name) for number, name in rows]

    def _number(self, db: Connection, name: str) -> int | None:
        number = db.value(f"SELECT id FROM {self.table} WHERE folded = ?", (_folded(name),))
        return None if number is None else int(number)

    def _known(self, db: Connection, name: str) -> tuple[int, str]:
        """Return the number and the name as it is written; a typo gets a suggestion."""
        names = self._names(db)
        found = next((one for one in names if _folded(one[1]) == _folded(name)), None)
        if found is None:
            raise UnknownNameError(self.kind, name, [other for _, other in names])
        return found

    def _check_free(self, db: Connection, name: str, own: int) -> None:
        if self._number(db, name) not in (None, own):
            raise InvalidInputError(
                f"there is a {self.kind} {name!r} already; choose another name, or delete that one first"
            )


@dataclass(frozen=True)
class Album:
    """Items under a title, in an order of one's own; ``ids`` has those that are in the collection."""

    title: str
    ids: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


class Albums(_NamedRows[Album]):
    """The albums of a collection, each with those of its items that are in the collection now.

    ``for album in collection.albums`` goes over them, ``collection.albums["Summer"]`` is one of them, and a filter asks
    for the items of one: ``album:Summer``. ``numbers_of`` returns the numbers of the items that a user names.
    """

    table = "album"
    column = "title"
    kind = "album"

    def __init__(self, store: Store, numbers_of: Callable[[Any], Sequence[int]]) -> None:
        super().__init__(store)
        self._numbers_of = numbers_of

    def items(self, title: str) -> list[Item]:
        """Return the items of an album in its order."""
        with self._store.reading() as db:
            return items_by_id(db, _members(db, self._known(db, title)[0]))

    def add(self, title: str, which: Any = ()) -> Album:
        """Put items at the end of an album, by id, path or filter; an album that is not there yet is made."""
        return self._change(title, lambda before, meant: [*before, *meant], which, makes=True)

    def remove(self, title: str, which: Any) -> Album:
        """Take items out of an album; they stay in the collection."""
        return self._change(title, lambda before, meant: [one for one in before if one not in set(meant)], which)

    def set(self, title: str, which: Any) -> Album:
        """Let an album have these items, in this order; one that is not there yet is made."""
        return self._change(title, lambda _, meant: meant, which, makes=True)

    def rename(self, title: str, new: str) -> Album:
        """Give an album another title, which must be free."""

        def rename(db: Connection) -> Album:
            number, plain = self._known(db, title)[0], checked_name(new)
            self._check_free(db, plain, number)
            db.run("UPDATE album SET title = ?, folded = ? WHERE id = ?", (plain, _folded(plain), number))
            note_changes(db, self.table)
            return self._read(db, number, plain)

        return self._store.write(rename)

    def _read(self, db: Connection, number: int, name: str) -> Album:
        among = "SELECT name FROM album_item JOIN item ON item.id = album_item.item WHERE album = ?"
        return Album(name, tuple(item for (item,) in db.rows(f"{among} ORDER BY place, id", (number,))))

    def _change(
        self, title: str, change: Callable[[list[int], list[int]], list[int]], which: Any, *, makes: bool = False
    ) -> Album:
        plain = checked_name(title)
        if not makes and plain not in self:
            self[plain]
        meant = list(self._numbers_of(which))

        def write(db: Connection) -> Album:
            if makes and self._number(db, plain) is None:
                db.run("INSERT INTO album (title, folded) VALUES (?, ?)", (plain, _folded(plain)))
            number, shown = self._known(db, plain)
            condition, values = db.among("id", meant)
            there = set(db.ids(f"SELECT id FROM item WHERE {condition}", values).tolist())
            ids = change(_members(db, number), [one for one in meant if one in there])
            db.run("DELETE FROM album_item WHERE album = ?", (number,))
            rows = [(number, one, place) for place, one in enumerate(dict.fromkeys(ids))]
            db.load("album_item", ("album", "item", "place"), rows)
            note_changes(db, self.table)
            return self._read(db, number, shown)

        return self._store.write(write)


def _members(db: Connection, album: int) -> list[int]:
    rows = db.rows("SELECT item FROM album_item WHERE album = ? ORDER BY place, item", (album,))
    return [int(item) for (item,) in rows]


@dataclass(frozen=True)
class SavedSearch(SearchOptions):
    """A search under a name, asked anew each time: words of the query language, a filter, or both, and how to search.

    ``mode`` is auto, similarity, words or both; without a ``retriever`` it is the one in force at that time.

    >>> SavedSearch("Dogs outside", "a dog - sofa", filter="year>=2020").mode
    'auto'
    """

    name: str
    query: str = ""
    filter: str | None = None
    mode: Literal["auto", "similarity", "words", "both"] = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", checked_name(self.name))
        object.__setattr__(self, "query", self.query.strip())
        if not self.query and self.filter is None:
            raise InvalidInputError("a saved search has words, a filter or both; give one of them")
        Filter.of(self.filter)


class SavedSearches(_NamedRows[SavedSearch]):
    """The saved searches of a collection, in the order in which they were saved; each run asks anew.

    ``for one in collection.saved_searches`` goes over them, ``collection.saved_searches["Dogs"]`` is one of them.
    """

    table = "saved_search"
    column = "name"
    kind = "saved search"

    def __init__(self, store: Store, answer: Callable[[SearchRequest], Answers]) -> None:
        super().__init__(store)
        self._answer = answer

    def save(self, search: SavedSearch) -> SavedSearch:
        """Save a search; one of the same name is replaced."""
        if search.query:
            _query(search)

        def save(db: Connection) -> None:
            db.run(
                "INSERT INTO saved_search (name, folded, document) VALUES (?, ?, ?) "
                "ON CONFLICT (folded) DO UPDATE SET name = excluded.name, document = excluded.document",
                _search_row(search),
            )
            note_changes(db, self.table)

        self._store.write(save)
        return search

    def rename(self, name: str, new: str) -> SavedSearch:
        """Give a saved search another name, which must be free."""

        def rename(db: Connection) -> SavedSearch:
            number, known = self._known(db, name)
            renamed = replace(self._read(db, number, known), name=new)
            self._check_free(db, renamed.name, number)
            values = (*_search_row(renamed), number)
            db.run("UPDATE saved_search SET name = ?, folded = ?, document = ? WHERE id = ?", values)
            note_changes(db, self.table)
            return renamed

        return self._store.write(rename)

    def run(self, name: str, k: int = 10, *, offset: int = 0) -> Answers:
        """Ask a saved search now."""
        search = self[name]
        if not search.query:
            raise InvalidInputError(
                f"the saved search {search.name!r} is a filter without words; list its items: {search.filter}"
            )
        hybrid = HYBRID_OF_MODE[search.mode]
        request = SearchRequest(
            _query(search), k=k, offset=offset, filter=Filter.of(search.filter), hybrid=hybrid, **search.options
        )
        return self._answer(request)

    def _read(self, db: Connection, number: int, name: str) -> SavedSearch:
        return SavedSearch(**json.loads(db.value("SELECT document FROM saved_search WHERE id = ?", (number,))))


def _search_row(search: SavedSearch) -> tuple[str, str, str]:
    return search.name, _folded(search.name), json.dumps(asdict(search), ensure_ascii=False)


def _query(search: SavedSearch) -> Query:
    """Return what a saved search asks; it names no files, which another machine may not have."""
    return parse_query(search.query, find_picture=lambda _: None)


# Names


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


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()
