"""What an open collection works with: its store, columns, loaded retrievers, vector indexes and root."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from diptych.atomic_files import Durability, checked_durability
from diptych.collection.root import ROOT, Root, check_root, is_trusted_root, root_of, stored_root, trust_root
from diptych.collection.searching.encoded_query import QueryEmbeddingCache
from diptych.collection.searching.rankings import SearchedModel, SearchView
from diptych.collection.store import models
from diptych.collection.store.columns import ColumnCache, Columns
from diptych.collection.store.dialect import Connection
from diptych.collection.store.models import LoadedRetrievers, LoadRetriever, Model
from diptych.collection.store.opening import open_store
from diptych.collection.store.points import POINT_KINDS
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store, put_setting, setting
from diptych.collection.vectors.vector_index import vector_index
from diptych.errors import CollectionBusyError
from diptych.space import Direction

if TYPE_CHECKING:
    from diptych.collection.store.suggestions import SuggestionCache


class CollectionState:
    """An open collection; every look at it is one transaction.

    ``folder`` is that of SQLite; of PostgreSQL, where this machine keeps what belongs to the collection.
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        load_retriever: LoadRetriever,
        *,
        durability: Durability | None = None,
        root: Path | None = None,
        write_wait: float | None = None,
        replica: str | None = None,
    ) -> None:
        self.place = place
        self.store: Store = open_store(os.fspath(place), checked_durability(durability), replica)
        self.folder: Path = self.store.folder
        if write_wait is not None:
            self.store.write_wait = write_wait
        self.load_retriever = load_retriever
        self.loaded = LoadedRetrievers(self.store, load_retriever)
        self.columns = ColumnCache(self.store)
        self._searched: dict[int, SearchedModel] = {}
        self._lock = threading.Lock()
        self._named_root = root
        if root is not None:
            check_root(self.folder, root)

    @property
    def root(self) -> Root:
        """The folder of pictures: the one that was named, or the recorded one, which may not be trusted."""
        if self._named_root is not None:
            return Root(self._named_root)
        return self._recorded

    @cached_property
    def _recorded(self) -> Root:
        with self.store.reading() as db:
            recorded = root_of(setting(db, ROOT, ".."), self.folder)
        return Root(recorded, None if is_trusted_root(self.folder, recorded) else self.folder)

    def keep_root(self) -> None:
        """Record the root that was named and trust it from now on, where both can be written now."""
        if self._named_root is None:
            return
        stored = stored_root(self._named_root, self.folder)
        with suppress(CollectionBusyError, OSError):
            with self.store.reading() as db:
                is_known = setting(db, ROOT) == stored
            if not is_known:
                self.store.write(lambda db: put_setting(db, ROOT, stored))
            trust_root(self.folder, self._named_root)

    @cached_property
    def suggestions(self) -> SuggestionCache:
        """Ways to go on with a query."""
        # Imported lazily: searching does not need it.
        from diptych.collection.store.suggestions import SuggestionCache

        return SuggestionCache()

    @contextmanager
    def looking(self, *, replica: bool = False) -> Iterator[tuple[Connection, Columns]]:
        """Read in one transaction, with the columns of its items; with ``replica`` a second server may answer."""
        with self.store.reading(replica=replica) as db:
            yield db, self.columns.current(db)

    @contextmanager
    def searching(self, name: str | None = None) -> Iterator[SearchView]:
        """Read in one transaction, with a stored retriever that is loaded."""
        with self.looking(replica=True) as (db, columns):
            yield SearchView(db, columns, self.searched(models.model_named(db, name)), self.root)

    def searched(self, model: Model) -> SearchedModel:
        """Return a model with its retriever and its vector indexes, loaded once."""
        retriever = self.loaded.of(model)
        with self._lock:
            known = self._searched.get(model.id)
            if known is None or known.model != model or known.retriever is not retriever:
                indexes = {} if known is None else dict(known.indexes)
                for kind in POINT_KINDS:
                    direction: Direction = "image_query" if kind == "text" else "text_query"
                    scoring = Scoring(retriever.space, direction)
                    indexes.setdefault(kind, vector_index(self.store, model.id, kind, scoring))
                known = SearchedModel(model, retriever, indexes, QueryEmbeddingCache(retriever))
                self._searched[model.id] = known
            return known

    def close(self) -> None:
        """Wait for what is being made, and close the database."""
        self.columns.wait()
        self.store.close()


class RecordedRoot(NamedTuple):
    """The folder of pictures that a collection records, and the folder of this machine that is trusted with it."""

    folder: Path
    collection: Path


def recorded_root(place: str | os.PathLike[str]) -> RecordedRoot:
    """Return the folder of pictures that a collection records, without loading anything else of it."""
    store = open_store(os.fspath(place))
    try:
        with store.reading() as db:
            return RecordedRoot(root_of(setting(db, ROOT, ".."), store.folder), store.folder)
    finally:
        store.close()
