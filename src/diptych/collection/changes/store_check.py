"""Checking the tables of a collection against its items, and cleaning them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from diptych.collection.browse.item_catalogue import Catalogue, text_hash
from diptych.collection.storage.layout import Layout, RetrieverNames
from diptych.collection.storage.retriever_protocol import SIDES, Side
from diptych.collection.storage.store import Store, features_table, points_table


@dataclass(frozen=True)
class CheckReport:
    """Whether a collection is whole, and what lies in it unused.

    ``problems`` are items that lack what they need; ``unused`` counts rows of each table that no item uses, which
    interrupted runs, removals and changes leave behind; ``unused_tables`` are those of retrievers no longer in force.
    """

    problems: tuple[str, ...] = ()
    unused: dict[str, int] = field(default_factory=dict)
    unused_tables: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every item has what it needs."""
        return not self.problems


class StoreCheck:
    """Looks for rows that items lack and for rows that no item uses."""

    def __init__(self, store: Store, layout: Layout, catalogue: Catalogue) -> None:
        self._store = store
        self._layout = layout
        self._used = {
            "image": set(catalogue.by_content),
            "text": {text_hash(text) for _, text in catalogue.captions.values()},
        }
        self._captions = set(catalogue.captions)

    def check(self) -> CheckReport:
        """Compare the tables with the items."""
        problems = [
            f"{_counted(lacking, side)} no points {_of(names, self._layout)}and "
            f"{'is' if lacking == 1 else 'are'} not found; add or refresh {'it' if lacking == 1 else 'them'}"
            for names in self._layout.stored
            if names.fingerprint not in self._layout.unfinished
            for side in SIDES
            if (lacking := self.lacking(names, side))
        ]
        problems += [
            f"the points of the retriever {names.name!r} are unfinished; add it again, or remove it"
            for names in self._layout.stored
            if names.fingerprint in self._layout.unfinished
        ]
        unused = {name: len(rows) for name, rows in self._unused_rows().items() if rows}
        return CheckReport(tuple(problems), unused, tuple(self._unused_tables()))

    def lacking(self, names: RetrieverNames, side: Side) -> int:
        """Return how many pictures or captions have no point of a retriever."""
        return len(self._used[side] - set(self._store.vector_keys(points_table(names, side))))

    def clean(self) -> None:
        """Remove what no item uses and join small files; the caller is the only writer."""
        for name in self._unused_tables():
            self._store.drop(name)
        for name, rows in self._unused_rows().items():
            if name == "captions":
                self._store.delete_captions(rows)
            elif name == "thumbnails":
                self._store.delete_thumbnails(rows)
            else:
                self._store.delete_vectors(name, rows)
        self._store.compact(everything=True)

    def _unused_rows(self) -> dict[str, Sequence[str]]:
        rows: dict[str, Sequence[str]] = {
            "captions": [key for key in self._store.caption_ids() if key not in self._captions],
            "thumbnails": [key for key in self._store.thumbnail_keys() if key not in self._used["image"]],
        }
        for name, side in self._tables_in_force().items():
            rows[name] = [key for key in self._store.vector_keys(name) if key not in self._used[side]]
        return rows

    def _tables_in_force(self) -> dict[str, Side]:
        return {
            table(retriever, side): side
            for retriever in self._layout.in_force
            for side in SIDES
            for table in (features_table, points_table)
        }

    def _unused_tables(self) -> list[str]:
        return [name for name in self._store.vector_tables() if name not in self._tables_in_force()]


def _counted(number: int, side: Side) -> str:
    what = "picture" if side == "image" else "caption"
    return f"{number:,} {what} has" if number == 1 else f"{number:,} {what}s have"


def _of(names: RetrieverNames, layout: Layout) -> str:
    return f"of the retriever {names.name!r} " if layout.further else ""
