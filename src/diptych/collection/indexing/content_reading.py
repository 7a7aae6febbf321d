"""Going through the pictures of a collection, each content once, resumed: text is read, regions get points."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.indexing.add_report import AddProgress, Progress
from diptych.collection.indexing.encoding import Source
from diptych.collection.indexing.file_facts import file_status
from diptych.collection.indexing.records import has_status
from diptych.collection.item import Item
from diptych.collection.retriever_protocol import without_disk_cache
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_id
from diptych.collection.store.models import Model
from diptych.collection.store.points import point_table, put_points, read_points
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store, note_changes
from diptych.collection.store.writing import put_picture_texts
from diptych.encoders.image.picture_parts import PictureText, PictureTextReader, read_regions
from diptych.errors import CollectionBusyError, CollectionError, InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders.image.picture_decoding import Picture

LOWEST_PRIORITY = 19
# What is lost by a kill, against the cost of a write.
PICTURES_AT_ONCE = 64
COMMIT_EVERY_S = 20.0
WHOLE_SHARE, KEPT_SCORE = 0.3, 0.9


@dataclass
class ReadingReport:
    """What became of reading: pictures ``read`` now, how many had been read before, and why others could not be."""

    read: int = 0
    known: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass
class TextReport(ReadingReport):
    """What became of reading, and how many of the pictures have text."""

    with_text: int = 0


Made = TypeVar("Made")
Report = TypeVar("Report", bound=ReadingReport)


class ContentReading(ABC, Generic[Made, Report]):
    """Reads the pictures that have not been read, in a thread of the lowest priority; others may write meanwhile.

    What was made is kept in ``table`` by content: copies are read once, and what is read is not read again.
    """

    table: str

    def __init__(self, store: Store, root: Root, report: Report) -> None:
        self._store = store
        self._root = root
        self._held: dict[int, Made] = {}
        self._last = time.monotonic()
        self.report = report

    @abstractmethod
    def _made(self, picture: Picture) -> Made:
        """Return what is to be kept of a picture."""

    @abstractmethod
    def _keep(self, db: Connection, made: Mapping[int, Made]) -> None:
        """Store it by content, in a transaction."""

    def run(self, progress: Progress | None = None) -> Report:
        """Read what is left; what was read before an interruption is kept."""
        started, unread = time.perf_counter(), self._unread()
        total = self.report.known + len(unread)
        with ThreadPoolExecutor(1, initializer=_give_way) as beside:
            try:
                for number, (content, first) in enumerate(unread.items(), self.report.known + 1):
                    with self._store.reading() as db:
                        # Others may have removed it since.
                        found = items_by_id(db, [first])
                    for item in found:
                        try:
                            self._held[content] = beside.submit(self._read, item).result()
                            self.report.read += 1
                        except InvalidInputError as reason:
                            self.report.skipped[str(item.path)] = str(reason)
                    if len(self._held) >= PICTURES_AT_ONCE or time.monotonic() - self._last >= COMMIT_EVERY_S:
                        self._commit()
                    if progress is not None:
                        progress(AddProgress(number, total))
            finally:
                self._commit()
        if self._held:
            raise CollectionBusyError(
                f"{self._root.folder} is being written by another process, so the last pictures could not be "
                "stored; wait until it has finished and read again"
            )
        self.report.seconds = time.perf_counter() - started
        return self.report

    def _unread(self) -> dict[int, int]:
        """Return the first item of each content that has not been read, by content."""
        with self._store.reading() as db:
            rows = db.rows("SELECT content, min(id) FROM item WHERE content IS NOT NULL GROUP BY content ORDER BY 2")
            there = set(db.ids(f"SELECT DISTINCT content FROM {self.table}").tolist())
        self.report.known = sum(content in there for content, _ in rows)
        return {content: item for content, item in rows if content not in there}

    def _read(self, item: Item) -> Made:
        self._root.check_trusted()
        path = self._root.file(str(item.path))
        if not has_status(item, file_status(path)):
            raise InvalidInputError("it has changed since it was indexed; index again")
        return self._made(path)

    def _commit(self) -> None:
        """Store what has been read; while another process writes, it is held for the next time."""
        self._last = time.monotonic()
        if self._held:
            with suppress(CollectionBusyError):
                self._store.write(self._keep_fresh)
                self._held = {}

    def _keep_fresh(self, db: Connection) -> None:
        condition, values = db.among("content", list(self._held))
        # Another process may have read the same, or removed the pictures.
        stored = set(db.ids(f"SELECT content FROM {self.table} WHERE {condition}", values).tolist())
        there = set(db.ids(f"SELECT content FROM item WHERE {condition}", values).tolist()) - stored
        if there:
            self._keep(db, {content: made for content, made in self._held.items() if content in there})


def _give_way() -> None:
    # On Linux a priority belongs to the thread; elsewhere the whole process gives way.
    with suppress(AttributeError, OSError):
        os.nice(LOWEST_PRIORITY)


class TextReading(ContentReading[PictureText, TextReport]):
    """Reads the text in the pictures that have not been read."""

    table = "picture_text"

    def __init__(self, store: Store, root: Root, reader: PictureTextReader | None = None) -> None:
        super().__init__(store, root, TextReport())
        self._reader = reader or PictureTextReader()

    def run(self, progress: Progress | None = None) -> TextReport:
        """Read what is left; what was read before an interruption is kept."""
        self._reader.prepare()
        return super().run(progress)

    def _made(self, picture: Picture) -> PictureText:
        text = self._reader.read(picture)
        self.report.with_text += bool(text.words)
        return text

    def _keep(self, db: Connection, made: Mapping[int, PictureText]) -> None:
        put_picture_texts(db, made)


def blend_with_whole_image(regions: AnyArray, whole: AnyArray) -> AnyArray:
    """Return the points of a picture's regions, mixed with that of the whole picture."""
    mixed = (1 - WHOLE_SHARE) * regions + WHOLE_SHARE * whole.astype(np.float32)
    return np.asarray(KEPT_SCORE * mixed, dtype=np.float32)


class RegionReading(ContentReading[AnyArray, ReadingReport]):
    """Encodes the regions of the pictures that lack them, with one stored model."""

    def __init__(self, store: Store, root: Root, source: Source) -> None:
        super().__init__(store, root, ReadingReport())
        self._model, retriever = source
        self.table = point_table(self._model.id, "region")
        # Thirteen rows for each picture would fill the user's cache with what is never asked for again.
        self._retriever = without_disk_cache(retriever)
        self._scoring = Scoring(self._retriever.space, "text_query")
        if not self._scoring.is_linear:
            raise InvalidInputError(
                f"the points of the search model {self._model.name!r} are not compared by inner products, so a region "
                "does not compare with a whole picture; take one that is, such as default"
            )

    def run(self, progress: Progress | None = None) -> ReadingReport:
        """Encode what is left; what was encoded before an interruption is kept."""
        with self._store.reading() as db:
            if not _width(db, self._model):
                # Nothing was ever encoded.
                return self.report
        return super().run(progress)

    def _made(self, picture: Picture) -> AnyArray:
        return self._scoring.stored(self._retriever.encode_images(read_regions(picture)))

    def _keep(self, db: Connection, made: Mapping[int, AnyArray]) -> None:
        if _width(db, self._model) is None:
            raise CollectionError(f"the search model {self._model.name!r} was removed meanwhile, and its regions go")
        wholes = dict(zip(*read_points(db, self._model.id, "image", list(made))[::2], strict=True))
        blended = [
            blend_with_whole_image(regions, wholes[content]) if content in wholes else regions
            for content, regions in made.items()
        ]
        contents = np.repeat(np.array(list(made)), [len(regions) for regions in blended])
        parts = np.concatenate([np.arange(len(regions)) for regions in blended])
        put_points(db, self._model.id, "region", contents, np.concatenate(blended), parts)
        db.run("UPDATE model SET has_regions = 1 WHERE id = ?", (self._model.id,))
        note_changes(db, "model")


def remove_regions(db: Connection, model: Model) -> None:
    """Delete the regions of a model."""
    if _width(db, model):
        db.run(f"DELETE FROM {point_table(model.id, 'region')}")
        db.run("UPDATE model SET has_regions = 0 WHERE id = ?", (model.id,))
        note_changes(db, "model")


def _width(db: Connection, model: Model) -> int | None:
    width: int | None = db.value("SELECT width FROM model WHERE id = ?", (model.id,))
    return width
