"""Query suggestions: words and phrases of a collection by their beginnings."""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from diptych.collection.browse.item_catalogue import Catalogue
from diptych.collection.storage.item import Item

SuggestionKind = Literal["label", "caption", "query"]


@dataclass(frozen=True)
class Suggestion:
    """A whole query, where its last words come from, and how often they occur there."""

    text: str
    kind: SuggestionKind
    count: int


_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_RARE = 2


class SuggestionIndex:
    """Labels, words of captions, and phrases of two words that occur more than once.

    What begins with the whole text comes first, then what goes on with its last two words, then with its last word;
    the most frequent first in each. Function words alone are never suggested, and no phrase begins or ends with one.

    >>> items = [Item("1", None, None, captions=("a red dog", "the red door")), Item("2", None, None, labels=("Dog",))]
    >>> [suggestion.text for suggestion in SuggestionIndex(items).beginning_with("a red do", 3)]
    ['a red Dog', 'a red door']
    """

    def __init__(self, items: Iterable[Item]) -> None:
        labels: Counter[str] = Counter()
        words: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for item in items:
            labels.update(item.labels)
            for caption in item.captions:
                found = _WORD.findall(caption.casefold())
                words.update(found)
                pairs.update(pairwise(found))
        self._entries = sorted(_entries(labels, words, pairs))
        self._keys = [entry[0] for entry in self._entries]
        self._counts = np.array([entry[3] for entry in self._entries], dtype=np.int64)

    def beginning_with(self, prefix: str, limit: int) -> list[Suggestion]:
        """Return at most ``limit`` ways to go on with a text."""
        found: dict[str, Suggestion] = {}
        for head, rest in _endings(prefix):
            for place in self._best(rest.casefold(), limit):
                _, ending, kind, count = self._entries[place]
                found.setdefault((head + ending).casefold(), Suggestion(head + ending, kind, count))
            if len(found) >= limit:
                break
        return list(found.values())[:limit]

    def _best(self, beginning: str, limit: int) -> list[int]:
        start = bisect_left(self._keys, beginning)
        stop = bisect_left(self._keys, beginning + "\U0010ffff")
        counts = self._counts[start:stop]
        if len(counts) > limit:
            least = np.partition(counts, -limit)[-limit]
            more, equal = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
            some = np.concatenate([more, equal[: limit - len(more)]])
        else:
            some = np.arange(len(counts))
        return [start + int(place) for place in some[np.lexsort((some, -counts[some]))]]


def _endings(prefix: str) -> Iterator[tuple[str, str]]:
    """Yield what stays and what is gone on with: the whole text, its last two words, its last word."""
    text = " ".join(prefix.split()) + (" " if prefix[-1:].isspace() and prefix.strip() else "")
    yield "", text
    words = text.split(" ")
    for kept in (2, 1):
        if len(words) > kept and words[-1]:
            yield " ".join(words[:-kept]) + " ", " ".join(words[-kept:])
    if len(words) > 2 and not words[-1]:
        yield " ".join(words[:-2]) + " ", f"{words[-2]} "


def _entries(
    labels: Counter[str], words: Counter[str], pairs: Counter[tuple[str, str]]
) -> Iterator[tuple[str, str, SuggestionKind, int]]:
    # Encoders bring scikit-learn along, which opening a collection does not need.
    from diptych.encoders.text.word_pipeline import FUNCTION_WORDS

    def says_something(word: str) -> bool:
        return word not in FUNCTION_WORDS and len(word) > 1 and not word.isdigit()

    named: dict[str, tuple[str, int]] = {}
    for label, count in labels.most_common():
        key = " ".join(label.casefold().split())
        if key:
            text, before = named.get(key, (" ".join(label.split()), 0))
            named[key] = text, before + count
    for key, (text, count) in named.items():
        yield key, text, "label", count
    for word, count in words.items():
        if says_something(word) and word not in named:
            yield word, word, "caption", count
    for (first, second), count in pairs.items():
        phrase = f"{first} {second}"
        if count >= _RARE and says_something(first) and says_something(second) and phrase not in named:
            yield phrase, phrase, "caption", count


# Making them takes at most this share of the time, however often the collection changes.
_SHARE = 0.05
_SHORT = 0.1


class SuggestionCache:
    """Keeps the suggestions of a catalogue until it changes; where making them takes long, older ones serve a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._catalogue: Catalogue | None = None
        self._made: SuggestionIndex | None = None
        self._good_until = 0.0

    def of(self, catalogue: Catalogue) -> SuggestionIndex:
        """Return suggestions from the items of a catalogue."""
        with self._lock:
            is_fresh = self._catalogue is catalogue or time.monotonic() < self._good_until
            if self._made is None or not is_fresh:
                started = time.monotonic()
                self._made, self._catalogue = SuggestionIndex(catalogue.items.values()), catalogue
                took = time.monotonic() - started
                self._good_until = time.monotonic() + took / _SHARE if took > _SHORT else 0.0
            return self._made
