"""Query suggestions: labels, and words and phrases of captions, by their beginnings."""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from diptych.arrays import IntArray
from diptych.collection.store.columns import Columns
from diptych.collection.store.dialect import Connection
from diptych.collection.store.values import LABEL
from diptych.errors import InvalidInputError

MAX_CAPTIONS = 50_000
"""Of more captions, the newest are counted."""
MAX_COUNTED_AGAIN = 5_000
"""So few captions are counted again after each change; to more, new ones are added."""
MIN_PHRASE_COUNT = 2
# Letters and digits, with an apostrophe or hyphen between them.
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
SuggestionKind = Literal["label", "caption", "query"]


@dataclass(frozen=True)
class Suggestion:
    """A query suggestion."""

    text: str
    """The whole query."""
    kind: SuggestionKind
    """Where its last words come from."""
    count: int
    """How often they occur there."""


class CaptionCounts:
    """Counts words of captions, and phrases of two words, without those that say nothing."""

    def __init__(self) -> None:
        # Imported lazily: encoders bring scikit-learn along, which opening a collection does not need.
        from diptych.encoders.text.word_pipeline import FUNCTION_WORDS

        self._function_words = FUNCTION_WORDS
        self._counts: Counter[str] = Counter()
        self._sorted: tuple[list[str], IntArray] = [], np.zeros(0, dtype=np.int64)

    def add(self, captions: Iterable[str]) -> None:
        """Count more captions."""
        for caption in captions:
            words = _WORD.findall(caption.casefold())
            telling = [word if self._is_telling(word) else "" for word in words]
            self._counts.update(filter(None, telling))
            self._counts.update(f"{one} {other}" for one, other in pairwise(telling) if one and other)
        known = sorted(key for key, n in self._counts.items() if n >= MIN_PHRASE_COUNT or " " not in key)
        self._sorted = known, np.array([self._counts[key] for key in known], dtype=np.int64)

    def _is_telling(self, word: str) -> bool:
        return len(word) >= 2 and word not in self._function_words and not word.isdigit()

    def beginning_with(self, beginning: str, limit: int) -> dict[str, int]:
        """Return the most frequent words and phrases with a beginning, and how often each occurs."""
        known, times = self._sorted
        first, last = (bisect_left(known, key) for key in (beginning, f"{beginning}\U0010ffff"))
        best = first + np.argsort(-times[first:last], kind="stable")[:limit]
        return {known[place]: int(times[place]) for place in best.tolist()}


class SuggestionCache:
    """The suggestions of a store. Its captions are counted at the first request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._change = -1
        self._last_caption = 0
        self._captions = CaptionCounts()

    def suggestions(self, db: Connection, columns: Columns, prefix: str, limit: int) -> list[Suggestion]:
        """Return at most ``limit`` ways to go on with a text.

        What begins with the whole text comes first, then what goes on with its last two words, then with its last
        word; the most frequent first in each. Function words alone are never suggested, and no phrase begins or ends
        with one.
        """
        if limit < 1:
            raise InvalidInputError(f"limit is at least 1, got {limit}")
        captions, labels = self._counted(db, columns), _labels(db, columns)
        found: dict[str, Suggestion] = {}
        for head, rest in _endings(prefix):
            beginning = rest.casefold()
            named = {key: n for key, (_, n) in labels.items() if key.startswith(beginning)}
            # A label stands for itself wherever it is a word of captions too.
            counts = captions.beginning_with(beginning, limit + len(named)) | named
            for key in sorted(counts, key=lambda key: (-counts[key], key))[:limit]:
                kind: SuggestionKind = "label" if key in labels else "caption"
                text = head + (labels[key][0] if key in labels else key)
                found.setdefault(text.casefold(), Suggestion(text, kind, counts[key]))
            if len(found) >= limit:
                break
        return list(found.values())[:limit]

    def _counted(self, db: Connection, columns: Columns) -> CaptionCounts:
        with self._lock:
            if columns.change != self._change:
                if columns.n_captions <= MAX_COUNTED_AGAIN:
                    self._captions, self._last_caption = CaptionCounts(), 0
                sql = "SELECT id, text FROM caption WHERE id > ? ORDER BY id DESC LIMIT ?"
                rows = db.rows(sql, (self._last_caption, MAX_CAPTIONS))
                if rows:
                    self._captions.add(text for _, text in rows)
                    self._last_caption = rows[0][0]
                self._change = columns.change
            return self._captions


def _labels(db: Connection, columns: Columns) -> dict[str, tuple[str, int]]:
    """Return the labels as they are most often written, and how often they occur, by their texts without case."""
    if LABEL not in columns.fields:
        return {}
    with columns.lock:
        found: dict[str, tuple[str, int]] | None = columns.remembered.get("labels")
        if found is None:
            found = columns.remembered["labels"] = {}
            values = columns.values_of(db, LABEL)
            counts = columns.counts_of(values.ids).tolist()
            for label, n in sorted(zip(values.stored, counts, strict=True), key=lambda one: (-one[1], one[0])):
                text = " ".join(label.split())
                if n and text:
                    known, before = found.get(text.casefold(), (text, 0))
                    found[text.casefold()] = known, before + n
        return found


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
