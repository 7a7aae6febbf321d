"""Adding up what records say about pictures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from diptych.data.caption_files.caption_record import CaptionRecord
from diptych.data.caption_files.captioned_picture import CaptionedPicture, MetadataValue
from diptych.data.caption_files.captioned_pictures import CaptionedPictures
from diptych.data.caption_files.picture_index import PictureIndex


class Gathering:
    """Collects records of any caption files and gives each picture what was said about it."""

    def __init__(self, index: PictureIndex) -> None:
        self.notes: list[str] = []
        self.unreadable: list[str] = []
        self._index = index
        self._captions: dict[Path, list[str]] = {}
        self._labels: dict[Path, dict[str, None]] = {}
        self._metadata: dict[Path, dict[str, MetadataValue]] = {}
        self._missing: dict[str, None] = {}
        self._ambiguous: dict[str, None] = {}
        self._n_empty = 0

    def add(self, records: Iterable[CaptionRecord], beside: Path) -> None:
        """Take in the records of a file in the folder ``beside``."""
        for record in records:
            found = self._index.find(record.file, beside)
            if len(found) == 1:
                self._add(found[0], record)
            else:
                (self._ambiguous if found else self._missing)[record.file] = None

    def _add(self, picture: Path, record: CaptionRecord) -> None:
        captions = self._captions.setdefault(picture, [])
        for caption in record.captions:
            words = " ".join(caption.split())
            if words:
                captions.append(words)
            else:
                self._n_empty += 1
        self._labels.setdefault(picture, {}).update(dict.fromkeys(record.labels))
        for name, value in record.metadata.items():
            self._metadata.setdefault(picture, {}).setdefault(name, value)

    def result(self, folder: Path) -> CaptionedPictures:
        """Return the pictures in the order of the folder."""
        pictures = {
            picture: CaptionedPicture(
                picture,
                tuple(self._captions[picture]),
                tuple(self._labels[picture]),
                self._metadata.get(picture, {}),
            )
            for picture in self._index.pictures
            if picture in self._captions
        }
        return CaptionedPictures(
            folder,
            pictures,
            missing=tuple(self._missing),
            ambiguous=tuple(self._ambiguous),
            n_empty_captions=self._n_empty,
            unreadable=tuple(dict.fromkeys(self.unreadable)),
            notes=tuple(dict.fromkeys(self.notes)),
        )
