"""Query suggestions: labels, and words and phrases of captions, by their beginnings."""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

import numpy as np

from diptych.arrays import AnyArray, BoolArray, IntArray
from diptych.collection.store.derived_arrays import Background, DerivedArrays, newest_arrays, only_maker, save_arrays
from diptych.collection.store.dialect import Connection
from diptych.collection.store.store import Store
from diptych.collection.store.values import LABEL
from diptych.errors import InvalidInputError

MAX_ITEMS_IN_MEMORY = 5_000
MAX_CHANGED = 20_000
MAX_PHRASES = 500_000
"""Of more phrases, those are dropped that were seen once."""
MIN_PHRASE_COUNT = 2
CAPTIONS_AT_ONCE = 20_000
# Stands between captions, which are cut into words together.
_MARK = "\0"
# Letters and digits, with an apostrophe or hyphen between them.
_WORD = re.compile(rf"{_MARK}|[^\W_]+(?:['’-][^\W_]+)*")
_KIND = "suggestions"
_WORD_BITS = 32
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


class SuggestionCounts:
    """Counts labels, words of captions, and phrases of two words, without those that say nothing."""

    def __init__(self) -> None:
        # Encoders bring scikit-learn along, which opening a collection does not need.
        from diptych.encoders.text.word_pipeline import FUNCTION_WORDS

        self._function_words = FUNCTION_WORDS
        self._labels: Counter[str] = Counter()
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._says_something: BoolArray = np.zeros(0, dtype=bool)
        self._words: IntArray = np.zeros(0, dtype=np.int64)
        self._phrases: IntArray = np.zeros(0, dtype=np.int64)
        self._phrase_counts: IntArray = np.zeros(0, dtype=np.int64)

    def add_labels(self, labels: Iterable[tuple[str, int]]) -> None:
        """Count labels, each as often as it occurs."""
        for label, times in labels:
            self._labels[label] += times

    def add_captions(self, captions: Iterable[str]) -> None:
        """Count the words of captions."""
        words = _WORD.findall(_MARK.join(captions).casefold())
        codes = np.array([self._numbers[word] for word in words], dtype=np.int64)
        fresh = list(self._numbers)[len(self._words) :]
        self._says_something = np.append(self._says_something, [self._is_telling(word) for word in fresh]).astype(bool)
        self._words = np.append(self._words, np.zeros(len(fresh), dtype=np.int64))
        self._words += np.bincount(codes, minlength=len(self._words))
        # A word and the next one, where both say something, as a mark does not.
        is_phrase = self._says_something[codes[:-1]] & self._says_something[codes[1:]]
        pairs, times = np.unique(codes[:-1][is_phrase] << _WORD_BITS | codes[1:][is_phrase], return_counts=True)
        self._phrases, self._phrase_counts = _summed(
            np.append(self._phrases, pairs), np.append(self._phrase_counts, times)
        )
        if len(self._phrases) > MAX_PHRASES:
            self._drop_rare_phrases()

    def _is_telling(self, word: str) -> bool:
        return len(word) >= 2 and word not in self._function_words and not word.isdigit()

    def _drop_rare_phrases(self) -> None:
        is_frequent = self._phrase_counts >= MIN_PHRASE_COUNT
        self._phrases, self._phrase_counts = self._phrases[is_frequent], self._phrase_counts[is_frequent]

    def index(self) -> SuggestionIndex:
        """Return what can be suggested."""
        self._drop_rare_phrases()
        entries: dict[str, int] = {}
        words = list(self._numbers)
        for place in np.flatnonzero(self._says_something).tolist():
            entries[words[place]] = int(self._words[place])
        for pair, times in zip(self._phrases.tolist(), self._phrase_counts.tolist(), strict=True):
            entries[f"{words[pair >> _WORD_BITS]} {words[pair & (1 << _WORD_BITS) - 1]}"] = times
        # A label stands for itself wherever it is a word of captions too.
        labels: dict[str, str] = {}
        label_counts: Counter[str] = Counter()
        for label, times in self._labels.most_common():
            key = " ".join(label.casefold().split())
            if key:
                labels.setdefault(key, " ".join(label.split()))
                label_counts[key] += times
        entries |= label_counts
        keys = sorted(key.encode() for key in entries)
        ends = np.cumsum([len(key) for key in keys], dtype=np.int64)
        counts = np.array([entries[key.decode()] for key in keys], dtype=np.int64)
        return SuggestionIndex(np.frombuffer(b"".join(keys), dtype=np.uint8), ends, counts, labels)


def _summed(keys: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return every key once, with the sum of its counts."""
    once, which = np.unique(keys, return_inverse=True)
    return once, np.bincount(which, weights=counts, minlength=len(once)).astype(np.int64)


@dataclass(frozen=True)
class SuggestionIndex:
    """Keys in alphabetical order, as UTF-8 one after the other, how often each occurs, and the labels among them."""

    keys: AnyArray
    ends: IntArray
    counts: IntArray
    labels: dict[str, str]

    def beginning_with(self, beginning: str, limit: int) -> list[tuple[str, str, SuggestionKind, int]]:
        """Return key, text, kind and count of the most frequent with a beginning."""
        first = beginning.encode(errors="replace")
        start, stop = self._place(first), self._place(first + b"\xff")
        counts = self.counts[start:stop]
        places = np.sort(np.argsort(-counts, kind="stable")[:limit]) + start
        found: list[tuple[str, str, SuggestionKind, int]] = []
        for place in places.tolist():
            key = self._key(place).decode()
            label = self.labels.get(key)
            found.append(
                (key, key if label is None else label, "caption" if label is None else "label", int(self.counts[place]))
            )
        return found

    def _key(self, place: int) -> bytes:
        start = int(self.ends[place - 1]) if place else 0
        return bytes(self.keys[start : int(self.ends[place])])

    def _place(self, key: bytes) -> int:
        return bisect_left(range(len(self.ends)), key, key=self._key)


def suggestions(indexes: Sequence[SuggestionIndex], prefix: str, limit: int) -> list[Suggestion]:
    """Return at most ``limit`` ways to go on with a text.

    What begins with the whole text comes first, then what goes on with its last two words, then with its last word;
    the most frequent first in each. Function words alone are never suggested, and no phrase begins or ends with one.

    >>> counts = SuggestionCounts()
    >>> counts.add_labels([("Dog", 1)])
    >>> counts.add_captions(["a red dog", "the red door"])
    >>> [suggestion.text for suggestion in suggestions([counts.index()], "a red do", 3)]
    ['a red Dog', 'a red door']
    """
    if limit < 1:
        raise InvalidInputError(f"limit is at least 1, got {limit}")
    found: dict[str, Suggestion] = {}
    for head, rest in _endings(prefix):
        for ending, kind, times in _most_frequent(indexes, rest.casefold(), limit):
            found.setdefault((head + ending).casefold(), Suggestion(head + ending, kind, times))
        if len(found) >= limit:
            break
    return list(found.values())[:limit]


def _most_frequent(
    indexes: Sequence[SuggestionIndex], beginning: str, limit: int
) -> list[tuple[str, SuggestionKind, int]]:
    # Deeper than asked, because what is frequent in all may be less so in each.
    depth = limit if len(indexes) == 1 else 8 * limit
    joined: dict[str, tuple[str, SuggestionKind, int]] = {}
    for index in indexes:
        for key, text, kind, times in index.beginning_with(beginning, depth):
            known = joined.get(key)
            if known is None or (kind == "label" and known[1] != "label"):
                joined[key] = text, kind, times
            elif kind == known[1]:
                joined[key] = *known[:2], known[2] + times
    best = sorted(joined.items(), key=lambda entry: (-entry[1][2], entry[0]))[:limit]
    return [entry for _, entry in best]


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


class SuggestionCache:
    """The suggestions of a store: counted at the first request, and again in the background when much has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._base: tuple[int, SuggestionIndex] | None = None
        self._patch: tuple[int, SuggestionIndex] | None = None
        self._background = Background("diptych-suggestions")
        self.wait = self._background.wait

    def suggestions(self, db: Connection, prefix: str, limit: int) -> list[Suggestion]:
        """Return at most ``limit`` ways to go on with a query."""
        return suggestions(self._indexes(db), prefix, limit)

    def _indexes(self, db: Connection) -> list[SuggestionIndex]:
        last = int(db.value("SELECT max(id) FROM change") or 0)
        with self._lock:
            if self._base is None:
                found = newest_arrays(self._store.derived, _KIND, last)
                self._base = self._counted() if found is None else (found.change, _mapped(found))
            since, base = self._base
            if since >= last:
                return [base]
            if self._patch is not None and self._patch[0] == last:
                return [base, self._patch[1]]
            n_items = int(db.value("SELECT max(id) FROM item") or 0)
            if n_items <= MAX_ITEMS_IN_MEMORY:
                self._base = self._counted()
                return [self._base[1]]
            sql = "SELECT DISTINCT item FROM change WHERE id > ? AND item IS NOT NULL"
            changed = db.ids(f"{sql} ORDER BY item DESC LIMIT {MAX_CHANGED}", (since,))
            if len(changed) >= min(MAX_CHANGED, n_items // 10):
                self._background.start(self._recount)
            self._patch = last, _index_of(db, changed)
            return [base, self._patch[1]]

    def _recount(self) -> None:
        base = self._counted()
        with self._lock:
            self._base, self._patch = base, None

    def _counted(self) -> tuple[int, SuggestionIndex]:
        """Count everything, in short transactions: one that lasts would hold up the log's checkpoints."""
        counts, after = SuggestionCounts(), 0
        with self._store.reading() as db:
            change = int(db.value("SELECT max(id) FROM change") or 0)
            n_items = int(db.value("SELECT max(id) FROM item") or 0)
            number = "(SELECT count(*) FROM item_value WHERE item_value.value = value.id)"
            rows = db.rows(f"SELECT text, {number} FROM value WHERE field = ?", (LABEL,))
            counts.add_labels((text, times) for text, times in rows if times)
        while True:
            with self._store.reading() as db:
                sql = "SELECT id, text FROM caption WHERE id > ? ORDER BY id LIMIT ?"
                captions = db.rows(sql, (after, CAPTIONS_AT_ONCE))
            if not captions:
                break
            counts.add_captions(text for _, text in captions)
            after = captions[-1][0]
        index = counts.index()
        if n_items > MAX_ITEMS_IN_MEMORY:
            with only_maker(self._store.derived, _KIND) as is_only:
                if is_only:
                    arrays = {"keys": index.keys, "ends": index.ends, "counts": index.counts}
                    labels = {"labels": index.labels}
                    index = _mapped(save_arrays(self._store.derived, _KIND, change, arrays, labels))
        return change, index


def _index_of(db: Connection, items: IntArray) -> SuggestionIndex:
    """Return what some items alone suggest."""
    counts = SuggestionCounts()
    condition, values = db.among("item", items)
    counts.add_captions(text for (text,) in db.rows(f"SELECT text FROM caption WHERE {condition}", values))
    times = Counter(db.ids(f"SELECT value FROM item_value WHERE {condition}", values).tolist())
    condition, values = db.among("id", list(times))
    labels = db.rows(f"SELECT id, text FROM value WHERE field = ? AND {condition}", (LABEL, *values))
    counts.add_labels((text, times[number]) for number, text in labels)
    return counts.index()


def _mapped(files: DerivedArrays) -> SuggestionIndex:
    return SuggestionIndex(**files.arrays, labels=files.note["labels"])
