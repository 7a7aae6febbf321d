"""A store of either engine with a toy model, its folder of pictures, and everything that changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from diptych.arrays import IntArray
from diptych.collection.filter import Filter
from diptych.collection.indexing.encoding import Source
from diptych.collection.indexing.item_changes import ItemChanges
from diptych.collection.item import Item
from diptych.collection.retriever_protocol import RetrieverProtocol
from diptych.collection.retrievers import add_model, saved_model
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import iterate_items
from diptych.collection.store.models import followed_models
from diptych.collection.store.points import read_points
from diptych.collection.store.store import Store
from tests.collection.store.conftest import postgres_address, postgres_server, store
from tests.doubles import ToyRetriever

__all__ = ["postgres_address", "postgres_server", "store"]


@dataclass
class Indexed:
    """A store with its models and the pictures of a folder."""

    store: Store
    folder: Path
    retrievers: dict[str, RetrieverProtocol] = field(default_factory=dict)

    @property
    def root(self) -> Root:
        return Root(self.folder)

    @property
    def changes(self) -> ItemChanges:
        """A new one, as another process has its own."""
        return ItemChanges(self.store, self.root, self.sources, matching_labels)

    def add_model(self, retriever: RetrieverProtocol, state: str = "kept") -> None:
        """Let new items get points of a model."""
        saved = saved_model(retriever)
        self.retrievers[retriever.fingerprint] = retriever
        self.store.write(lambda db: add_model(db, saved, retriever.name, state))  # type: ignore[arg-type]

    def sources(self) -> Sequence[Source]:
        """Return the models that new items get points of."""
        with self.store.reading() as db:
            return [(model, self.retrievers[model.fingerprint]) for model in followed_models(db)]

    def items(self) -> dict[str, Item]:
        """Return all items by id."""
        return {item.id: item for _, item in iterate_items(self.store)}

    def paths(self) -> dict[str, Item]:
        """Return the items of pictures by path."""
        return {item.path: item for item in self.items().values() if item.path is not None}

    def check_whole(self) -> None:
        """Check that each picture and each caption has the point that each model makes of it."""
        for model, retriever in self.sources():
            with self.store.reading() as db:
                contents = dict(db.rows("SELECT name, content FROM item WHERE content IS NOT NULL"))
                captions = dict(db.rows("SELECT name, content FROM caption"))
                points = {}
                for side in ("image", "text"):
                    found, _, rows = read_points(db, model.id, side)
                    points |= dict(zip(found.tolist(), rows.astype(np.float32), strict=True))
            for item in self.items().values():
                expected = [
                    (captions[name], retriever.encode_texts([text])[0])
                    for name, text in zip(item.caption_ids, item.captions, strict=True)
                ]
                if item.path is not None:
                    expected.append((contents[item.id], retriever.encode_images([self.root.file(item.path)])[0]))
                for content, point in expected:
                    np.testing.assert_allclose(points[content], point / np.linalg.norm(point), atol=1e-3)


def matching_labels(db: Connection, wanted: Filter) -> IntArray:
    """Return the items that have a label."""
    return db.ids("SELECT item FROM item_value JOIN value ON value.id = value WHERE text = ?", (wanted.value,))


@pytest.fixture
def indexed(store: Store, photos: Path) -> Indexed:
    made = Indexed(store, photos)
    made.add_model(ToyRetriever(), "active")
    return made
