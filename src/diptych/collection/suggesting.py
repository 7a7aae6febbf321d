"""Suggestions that are made when they are needed."""

from __future__ import annotations

import threading
import time

from diptych.collection.catalogue import Catalogue
from diptych.collection.suggestions import Suggestions

# Making them takes at most this share of the time, however often the collection changes.
_SHARE = 0.05
_SHORT = 0.1


class Suggesting:
    """Keeps the suggestions of a catalogue until it changes.

    Where making them takes longer than a tenth of a second, those of an older catalogue serve for twenty times as long:
    somebody types, and waiting for the newest words would help less than the words of a moment ago.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._catalogue: Catalogue | None = None
        self._made: Suggestions | None = None
        self._good_until = 0.0

    def of(self, catalogue: Catalogue) -> Suggestions:
        """Return suggestions from the items of a catalogue."""
        with self._lock:
            is_fresh = self._catalogue is catalogue or time.monotonic() < self._good_until
            if self._made is None or not is_fresh:
                started = time.monotonic()
                self._made, self._catalogue = Suggestions(catalogue.items.values()), catalogue
                took = time.monotonic() - started
                self._good_until = time.monotonic() + took / _SHARE if took > _SHORT else 0.0
            return self._made
