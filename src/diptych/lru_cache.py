"""A dictionary of limited size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LRUCache(Generic[Key, Value]):
    """Keeps the entries that were used last, while their sizes add up to ``max_size``; threads need a lock around it.

    >>> from diptych.lru_cache import LRUCache
    >>> cache = LRUCache(2)
    >>> for word in ("a", "b", "c"):
    ...     cache[word] = word.upper()
    >>> cache.get("a"), cache.get("c")
    (None, 'C')
    """

    def __init__(self, max_size: int, size_of: Callable[[Value], int] | None = None) -> None:
        self.max_size = max_size
        self.size_of = size_of
        self._entries: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, or None."""
        if key not in self._entries:
            return None
        value = self._entries[key] = self._entries.pop(key)
        return value

    def __setitem__(self, key: Key, value: Value) -> None:
        self._entries.pop(key, None)
        self._entries[key] = value
        while len(self._entries) > 1 and self._size() > self.max_size:
            del self._entries[next(iter(self._entries))]

    def _size(self) -> int:
        return len(self._entries) if self.size_of is None else sum(map(self.size_of, self._entries.values()))
