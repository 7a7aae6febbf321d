"""Reading the text in the pictures of a collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diptych.collection.changes.add_report import Progress
from diptych.collection.changes.content_reading import ContentReading, ReadingReport
from diptych.collection.search.live_state import LiveState
from diptych.encoders.image.text_in_pictures import PictureText, PictureTextReader

if TYPE_CHECKING:
    from diptych.encoders.image.picture_decoding import Picture


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
