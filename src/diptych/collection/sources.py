"""From whatever a user names to records."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from diptych.collection.record import Record
from diptych.collection.root import Root
from diptych.data.caption_files.captioned_picture import CaptionedPicture
from diptych.data.picture_files import find_pictures
from diptych.errors import InvalidInputError


class Sources:
    """Collects records from files, folders, records and captioned pictures.

    A path that is named twice counts once; what is said of it last holds. ``skipped`` gets the folders that cannot be
    read, and the captioned pictures whose description cannot be stored.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self.skipped: dict[str, str] = {}

    def records(self, sources: Any) -> list[Record]:
        """Return one record per picture or text."""
        found: dict[object, Record] = {}
        for record in self._each(sources):
            key = object() if record.path is None else self._root.given(record.path)
            found.pop(key, None)
            found[key] = record
        return list(found.values())

    def _each(self, source: Any) -> Iterable[Record]:
        if isinstance(source, Record):
            yield source
        elif isinstance(source, CaptionedPicture):
            yield from self._captioned(source)
        elif isinstance(source, (str, os.PathLike)):
            yield from self._files(self._root.given(source))
        elif isinstance(source, Iterable) and not isinstance(source, (bytes, dict)):
            for part in source:
                yield from self._each(part)
        else:
            raise InvalidInputError(
                f"add takes paths of pictures or folders, and Records, got {type(source).__name__}; pass a Record"
            )

    def _captioned(self, source: CaptionedPicture) -> Iterable[Record]:
        try:
            record = Record(source.path, source.captions or None, source.labels or None, source.metadata or None)
        except InvalidInputError as reason:
            # One bad line of a caption file must not cost the others.
            self._skip(source.path, str(reason))
            return
        yield record

    def _files(self, path: Path) -> Iterable[Record]:
        if not path.is_dir():
            yield Record(path)
            return
        for picture in find_pictures(path, on_unreadable=self._skip):
            yield Record(picture)

    def _skip(self, path: Path, reason: str) -> None:
        self.skipped[str(path)] = reason
