"""Bytes that were asked for lately."""

from __future__ import annotations

import threading
from collections import OrderedDict


class ByteCache:
    """Values by key up to a total size; the one not asked for longest goes first.

    >>> from diptych.collection.byte_cache import ByteCache
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
