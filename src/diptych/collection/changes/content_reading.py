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
from diptych.collection.changes.add_report import AddProgress, Progress
from diptych.collection.changes.file_facts import file_status
from diptych.collection.search.approximate_index import Scoring
from diptych.collection.search.encoded_query import without_disk_cache
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage.item import Item
from diptych.collection.storage.store import points_table
from diptych.encoders.image.picture_parts import REGIONS, PictureText, PictureTextReader, read_regions
from diptych.errors import CollectionBusyError, CollectionError, InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders.image.picture_decoding import Picture

_LOWEST_PRIORITY = 19
# What is lost by a kill, against the small files that each commit makes.
_COMMIT_PICTURES, _COMMIT_SECONDS = 64, 20.0


@dataclass
class ReadingReport:
    """What became of reading: pictures ``read`` now, how many had been read before, and why others could not be."""

    read: int = 0
    known: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


Made = TypeVar("Made")
Report = TypeVar("Report", bound=ReadingReport)


class ContentReading(ABC, Generic[Made, Report]):
    """Reads the pictures that have not been read, in a thread of the lowest priority.

    The collection is locked only while what was made of some pictures is written, so that others may write meanwhile.
    It is kept in ``table`` by content: copies are read once, and what is read is not read again.
    """

    def __init__(self, state: LiveState, table: str, report: Report) -> None:
        self._state = state
        self._table = table
        self._held: dict[str, Made] = {}
        self._last = time.monotonic()
        self.report = report

    @abstractmethod
    def _made(self, picture: Picture) -> Made:
        """Return what is to be kept of a picture."""

    @abstractmethod
    def _keep(self, made: Mapping[str, Made]) -> None:
        """Store it by content; the caller is the only writer."""

    def _finish(self) -> None:
        """Do what is left after the last picture, or after an interruption; the caller is the only writer."""
        if self.report.read:
            self._state.tidy(self.report.read)

    def run(self, progress: Progress | None = None) -> Report:
        """Read what is left; what was read before an interruption is kept."""
        started, items = time.perf_counter(), self._unread()
        total = self.report.known + len(items)
        with ThreadPoolExecutor(1, initializer=_give_way) as beside:
            try:
                for number, item in enumerate(items, self.report.known + 1):
                    self._take(item, beside)
                    if self._is_time():
                        self._commit()
                    if progress is not None:
                        progress(AddProgress(number, total))
            finally:
                self._commit(is_last=True)
        if self._held:
            raise CollectionBusyError(
                f"{self._state.folder} is being written by another process, so the last pictures could not be "
                "stored; wait until it has finished and read again"
            )
        self.report.seconds = time.perf_counter() - started
        return self.report

    def _unread(self) -> list[Item]:
        """Return one item for each content that has not been read."""
        known = set(self._state.store.keys(self._table).to_pylist())
        unread: dict[str, Item] = {}
        seen: set[str] = set()
        for item in self._state.items():
            if item.content_hash is not None:
                seen.add(item.content_hash)
                if item.content_hash not in known:
                    unread.setdefault(item.content_hash, item)
        self.report.known = len(seen & known)
        return list(unread.values())

    def _take(self, item: Item, beside: ThreadPoolExecutor) -> None:
        try:
            self._held[str(item.content_hash)] = beside.submit(self._read, item).result()
        except InvalidInputError as reason:
            self.report.skipped[str(item.path)] = str(reason)
            return
        self.report.read += 1

    def _read(self, item: Item) -> Made:
        self._state.root.check_trusted()
        path = self._state.root.file(str(item.path))
        status = file_status(path)
        if (status.st_size, status.st_mtime_ns) != (item.size, item.mtime_ns):
            raise InvalidInputError("it has changed since it was indexed; index again")
        return self._made(path)

    def _is_time(self) -> bool:
        return len(self._held) >= _COMMIT_PICTURES or time.monotonic() - self._last >= _COMMIT_SECONDS

    def _commit(self, *, is_last: bool = False) -> None:
        """Store what has been read; while another process writes, it is held for the next time."""
        self._last = time.monotonic()
        if not self._held and not is_last:
            return
        with suppress(CollectionBusyError), self._state.writing():
            # Another process may have read the same.
            stored = set(self._state.store.present_keys(self._table, list(self._held)))
            fresh = {key: made for key, made in self._held.items() if key not in stored}
            if fresh:
                self._keep(fresh)
            self._held = {}
            if is_last:
                self._finish()


def _give_way() -> None:
    # On Linux a priority belongs to the thread; elsewhere the whole process gives way.
    with suppress(AttributeError, OSError):
        os.nice(_LOWEST_PRIORITY)


@dataclass
class TextReport(ReadingReport):
    """What became of reading, and how many of the pictures have text."""

    with_text: int = 0


class TextReading(ContentReading[PictureText, TextReport]):
    """Reads the text in the pictures that have not been read."""

    def __init__(self, state: LiveState, reader: PictureTextReader | None = None) -> None:
        super().__init__(state, "picture_texts", TextReport())
        self._reader = reader or PictureTextReader()

    def run(self, progress: Progress | None = None) -> TextReport:
        """Read what is left; what was read before an interruption is kept."""
        self._reader.prepare()
        return super().run(progress)

    def _made(self, picture: Picture) -> PictureText:
        text = self._reader.read(picture)
        self.report.with_text += bool(text.words)
        return text

    def _keep(self, made: Mapping[str, PictureText]) -> None:
        self._state.store.picture_texts.add(made)


class RegionReading(ContentReading[AnyArray, ReadingReport]):
    """Encodes the regions of the pictures that lack them, with one stored retriever."""

    def __init__(self, state: LiveState, name: str | None) -> None:
        self._names = state.layout.named(name)
        super().__init__(state, points_table(self._names, "region"), ReadingReport())
        # Thirteen rows for each picture would fill the user's cache with what nobody asks for again.
        self._retriever = without_disk_cache(state.retriever(self._names.name))
        if not Scoring(self._retriever.space, "text_query").is_linear:
            raise InvalidInputError(
                f"the points of the search model {self._names.name!r} are not compared by inner products, so a region "
                "does not compare with a whole picture; take one that is, such as default"
            )

    def _made(self, picture: Picture) -> AnyArray:
        # The points of a picture are one row, so that a picture has all of its regions or none.
        return np.ravel(self._retriever.encode_images(read_regions(picture)))

    def _keep(self, made: Mapping[str, AnyArray]) -> None:
        if self._state.layout.with_fingerprint(self._names.fingerprint) is None:
            raise CollectionError(f"the search model {self._names.name!r} was removed meanwhile, and its regions go")
        self._state.store.add_vectors(self._table, list(made), np.stack(list(made.values())))

    def _finish(self) -> None:
        """Let searches use what is stored, here and in other processes, which see it by the time of the layout."""
        super()._finish()
        known = set(self._state.store.keys(self._table).to_pylist())
        stored = sum(item.content_hash in known for item in self._state.items())
        searched = self._state.snapshot(self._names.name).galleries.get("region", ())
        is_old = len(searched) != stored * len(REGIONS)
        if is_old:
            self._state.forget_points(self._names, "region")
        if is_old or self.report.read:
            self._state.write_layout(self._state.layout, None)


def remove_regions(state: LiveState, name: str | None) -> None:
    """Delete the regions of a retriever; the caller is the only writer."""
    names = state.layout.named(name)
    # Backups that are being made see by this that something goes, and other processes afterwards that it is gone.
    state.write_layout(state.layout, None)
    state.store.drop(points_table(names, "region"))
    state.forget_points(names, "region")
    state.write_layout(state.layout, None)
