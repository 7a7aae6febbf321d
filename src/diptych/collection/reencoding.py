"""The points of another retriever."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from diptych.collection.add_progress import AddProgress
from diptych.collection.catalogue import Catalogue, text_hash
from diptych.collection.encoding import Encoding
from diptych.collection.file_facts import content_hash, file_status
from diptych.collection.item import Item
from diptych.collection.reencode_report import ReencodeReport
from diptych.collection.root import Root
from diptych.errors import InvalidInputError

_BATCH = 1024


class Reencoding:
    """Gives every picture and caption a point of a new retriever, from stored features where its encoders made them.

    What is there already is not made again, so an interrupted run goes on where it stopped.
    """

    def __init__(self, catalogue: Catalogue, root: Root, encoding: Encoding) -> None:
        self._catalogue = catalogue
        self._root = root
        self._encoding = encoding
        self._failures: dict[str, str] = {}

    def run(self, progress: Callable[[AddProgress], None] | None = None) -> ReencodeReport:
        """Make all missing points."""
        started = time.perf_counter()
        pictures = self._encoding.missing("image", list(self._catalogue.by_content))
        texts = {text_hash(text): text for _, text in self._catalogue.captions.values()}
        captions = self._encoding.missing("text", list(texts))
        total, done = len(pictures) + len(captions), 0
        for start in range(0, len(pictures), _BATCH):
            batch = pictures[start : start + _BATCH]
            self._pictures(batch)
            done += len(batch)
            if progress is not None:
                progress(AddProgress(done, total))
        for start in range(0, len(captions), _BATCH):
            part = captions[start : start + _BATCH]
            self._encoding.texts({key: texts[key] for key in part})
            done += len(part)
            if progress is not None:
                progress(AddProgress(done, total))
        return ReencodeReport(
            pictures=len(pictures) - len(self._failures),
            captions=len(captions),
            read_again=self._encoding.read_again,
            failures=self._failures,
            seconds=time.perf_counter() - started,
        )

    def _pictures(self, contents: list[str]) -> None:
        files = {}
        for content in self._encoding.from_features(contents):
            try:
                files[content] = self._file_with(content)
            except InvalidInputError as reason:
                self._failures[str(self._catalogue.by_content[content][0].path)] = str(reason)
        for content, unreadable in self._encoding.pictures(files).items():
            self._failures[str(self._catalogue.by_content[content][0].path)] = unreadable

    def _file_with(self, content: str) -> tuple[Path, os.stat_result]:
        """Return a file that still holds this content, with its status from before it was looked at."""
        problem = InvalidInputError("it is stored without a file")
        for item in self._catalogue.by_content[content]:
            if item.path is None:
                continue
            path = self._root.file(item.path)
            try:
                status = file_status(path)
                if _is_unchanged(path, status, item):
                    return path, status
                problem = InvalidInputError("it has changed since it was added; refresh the collection")
            except InvalidInputError as reason:
                problem = reason
        raise problem


def _is_unchanged(path: Path, status: os.stat_result, item: Item) -> bool:
    if (status.st_size, status.st_mtime_ns) == (item.size, item.mtime_ns):
        return True
    return content_hash(path) == item.content_hash
