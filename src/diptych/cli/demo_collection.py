"""A collection to try searching with."""

from __future__ import annotations

import os
import shutil
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
    """Pictures with captions in a folder, the retriever that suits them, and what to search for."""

    name: str
    title: str
    examples: tuple[str, ...]
    root: Path
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
        with self._kept() or self._made(records, stages) as collection:
            add_pictures(collection, records, stages)
            yield collection

    def _kept(self) -> Collection | None:
        if not is_collection(self.folder):
            return None
        collection = Collection.open(self.folder)
        if collection.root == Path(os.path.abspath(self.root)):
            return collection
        # The pictures have moved since, or an older version had another idea of where they are.
        collection.close()
        shutil.rmtree(self.folder)
        return None

    def _made(self, records: Sequence[Record], stages: Stages) -> Collection:
        retriever = self.make_retriever(records, stages)
        check_folder(self.folder)
        return Collection.create(self.folder, retriever, root=self.root)
