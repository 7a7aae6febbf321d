"""Thumbnails of stored pictures, read from the store and cached in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from diptych.collection.storage.store import Store


class ByteCache:
    """Values by key up to a total size; the one not asked for longest goes first.

    >>> from diptych.collection.browse.thumbnail_cache import ByteCache
    >>> cache = ByteCache(largest=5)
    >>> cache.put("a", b"123")
    >>> cache.put("b", b"456")
    >>> cache.get("a"), cache.get("b")
    (None, b'456')
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._size = 0
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """Return a kept value, or None."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: str, value: bytes) -> None:
        """Keep a value; one larger than the whole cache is not kept."""
        with self._lock:
            self._size += len(value) - len(self._values.pop(key, b""))
            self._values[key] = value
            while self._size > self._largest:
                self._size -= len(self._values.popitem(last=False)[1])


_LARGEST_CACHE = 64 << 20


class Thumbnails:
    """The thumbnails of a store by the content of their pictures.

    Searching the table for a key reads all of its keys, so the places of the rows are remembered. Another process may
    join files, which moves rows: each row that is read says its key, and a wrong or missing one leads to a new look.
    What a key stands for never changes, so what was read lately is kept in memory, up to 64 MiB.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept = ByteCache(_LARGEST_CACHE)
        self._lock = threading.Lock()
        self._version = -1
        self._places: dict[str, int] = {}

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the thumbnails of those keys that have one."""
        found: dict[str, bytes] = {}
        wanted = []
        for key in dict.fromkeys(keys):
            kept = self._kept.get(key)
            if kept is None:
                wanted.append(key)
            else:
                found[key] = kept
        read = self._read(wanted) if wanted else {}
        for key, picture in read.items():
            self._kept.put(key, picture)
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
        rows = self._store.thumbnails_at([places[key] for key in keys if key in places])
        wanted = set(keys)
        return {key: picture for key, picture in rows if key in wanted}

    def _places_since(self, places: dict[str, int]) -> dict[str, int]:
        """Return the places as they are now; the same object where nobody can know more."""
        with self._lock:
            version = self._store.thumbnails_version()
            if self._places is places and version != self._version:
                self._places, self._version = self._store.thumbnail_places(), version
            return self._places
