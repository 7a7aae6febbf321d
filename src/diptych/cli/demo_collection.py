"""A collection to try searching with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from diptych.cli.collection_place import is_collection
from diptych.cli.files import check_folder
from diptych.cli.indexing import add_pictures
from diptych.cli.stages import Stages
from diptych.collection import Collection, Record
from diptych.data import cache_folder
from diptych.retriever import Retriever


@dataclass(frozen=True)
class DemoCollection:
    """Pictures with captions, the retriever that suits them, and what to search for."""

    name: str
    title: str
    examples: tuple[str, ...]
    make_records: Callable[[Stages], Sequence[Record]]
    make_retriever: Callable[[Sequence[Record], Stages], Retriever]

    @property
    def folder(self) -> Path:
        """Where the collection is kept: in the user's cache, since it can be made again."""
        return cache_folder() / "demo" / self.name

    @contextmanager
    def open(self, stages: Stages) -> Iterator[Collection]:
        """Make the collection, or bring it up to date, and open it."""
        records = self.make_records(stages)
        if is_collection(self.folder):
            collection = Collection.open(self.folder)
        else:
            retriever = self.make_retriever(records, stages)
            check_folder(self.folder)
            collection = Collection.create(self.folder, retriever)
        with collection:
            add_pictures(collection, records, stages)
            yield collection
