"""Thumbnails of stored pictures, read from the store and cached in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from cachetools import LRUCache

from diptych.collection.storage.store import Store

_LARGEST_CACHE = 64 << 20


class Thumbnails:
    """The thumbnails of a store by the content of their pictures; those read lately are kept in memory.

    Searching the table for a key reads all of its keys, so the places of the rows are remembered. Another process may
    join files, which moves rows: each row that is read says its key, and a wrong or missing one leads to a new look.
    """

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._kept: LRUCache[str, bytes] = LRUCache(_LARGEST_CACHE, getsizeof=len)
        self._kept_lock, self._lock = threading.Lock(), threading.Lock()
        self._version = -1
        self._places: dict[str, int] = {}

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the thumbnails of those keys that have one."""
        distinct = dict.fromkeys(keys)
        with self._kept_lock:
            found = {key: kept for key in distinct if (kept := self._kept.get(key)) is not None}
        wanted = [key for key in distinct if key not in found]
        read = self._read(wanted) if wanted else {}
        with self._kept_lock:
            for key, picture in read.items():
                # One that is larger than the whole cache is not kept.
                with suppress(ValueError):
                    self._kept[key] = picture
        return found | read

    def _read(self, keys: list[str]) -> dict[str, bytes]:
        places = self._places
        read = self._read_at(places, keys)
        while lacking := [key for key in keys if key not in read]:
            newer = self._places_since(places)
            if newer is places:
                break
            places = newer
            read |= self._read_at(places, lacking)
        return read

    def _read_at(self, places: dict[str, int], keys: list[str]) -> dict[str, bytes]:
        rows = self._store().thumbnails_at([places[key] for key in keys if key in places])
        wanted = set(keys)
        return {key: picture for key, picture in rows if key in wanted}

    def _places_since(self, places: dict[str, int]) -> dict[str, int]:
        """Return the places as they are now; the same object where nobody can know more."""
        with self._lock:
            version = self._store().table_version("thumbnails")
            if self._places is places and version != self._version:
                self._places, self._version = self._store().thumbnail_places(), version
            return self._places
