"""What is in memory of one stored retriever."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from diptych.arrays import AnyArray
from diptych.collection.asked_words import AskedWords
from diptych.collection.catalogue import Catalogue, image_points, text_points
from diptych.collection.contract import PointSource, Side
from diptych.collection.gallery import Gallery
from diptych.collection.item import Item
from diptych.collection.retriever_names import RetrieverNames
from diptych.collection.scoring import Scoring
from diptych.collection.store import Store
from diptych.collection.tables import features_table, points_table
from diptych.space import Direction

_QUERY_SIDE: dict[Side, Direction] = {"image": "text_query", "text": "image_query"}
_WANTED = {"image": image_points, "text": text_points}


class RetrieverState:
    """One retriever with the galleries of its points, each loaded when it is first asked for.

    Points are read from the tables of this retriever's fingerprint alone, so those of two are never mixed.
    """

    def __init__(self, names: RetrieverNames, store: Store, load: Callable[[RetrieverNames], PointSource]) -> None:
        self.names = names
        self.galleries: dict[Side, Gallery] = {}
        self._store = store
        self._load = load
        self._source: PointSource | None = None
        self._words: AskedWords | None = None
        self._catalogue: Catalogue | None = None

    @property
    def source(self) -> PointSource:
        """The retriever itself."""
        if self._source is None:
            self._source = self._load(self.names)
        return self._source

    @property
    def words(self) -> AskedWords:
        """The points of words that are asked for."""
        if self._words is None:
            self._words = AskedWords(self.source)
        return self._words

    def use(self, names: RetrieverNames, source: PointSource | None) -> None:
        """Take over another saved form of the retriever, which makes the same points."""
        if source is not None or names.saved != self.names.saved:
            self._source = source
            self._words = None
        self.names = names

    def bring_to(self, catalogue: Catalogue, finish: Callable[[Side, Gallery], Gallery]) -> None:
        """Make the galleries those of a catalogue; ``finish`` gets each that is made for the first time."""
        if self._catalogue is catalogue:
            return
        for side, direction in _QUERY_SIDE.items():
            first = side not in self.galleries
            gallery = Gallery(Scoring(self.source.space, direction)) if first else self.galleries[side]
            gallery = gallery.synchronised(_WANTED[side](catalogue.items.values()), partial(self._points, side))
            self.galleries[side] = finish(side, gallery) if first else gallery
        self._catalogue = catalogue

    def follow(self, before: Catalogue, after: Catalogue, old: Iterable[Item], new: Iterable[Item]) -> None:
        """Change the galleries where items have changed; cheaper than comparing all of them."""
        if self._catalogue is not before:
            return
        for side, gallery in self.galleries.items():
            wanted = _WANTED[side]
            self.galleries[side] = gallery.changed(wanted(old), wanted(new), partial(self._points, side))
        self._catalogue = after

    def features(self, side: Side, keys: Sequence[str]) -> Mapping[str, AnyArray]:
        """Return the stored features of some contents, as far as there are any."""
        return self._rows(features_table(self.names, side), keys)

    def _points(self, side: Side, keys: Sequence[str]) -> Mapping[str, AnyArray]:
        return self._rows(points_table(self.names, side), keys)

    def _rows(self, table: str, keys: Sequence[str]) -> Mapping[str, AnyArray]:
        return {
            key: row
            for found, rows in self._store.read_vectors(table, keys)
            for key, row in zip(found, rows, strict=True)
        }
