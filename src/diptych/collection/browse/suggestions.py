"""Query suggestions: words and phrases of a collection by their beginnings."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.arrays import IntArray
from diptych.collection.storage.layout import search_package

SuggestionKind = Literal["label", "caption", "query"]


@dataclass(frozen=True)
class Suggestion:
    """A whole query, where its last words come from, and how often they occur there."""

    text: str
    kind: SuggestionKind
    count: int


_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_RARE = 2
# Phrases that a million captions hold are mostly seen once; those are dropped now and then.
_MOST_PHRASES = 500_000


class SuggestionCounts:
    """Counts labels, words of captions, and phrases of two words."""

    def __init__(self) -> None:
        self._labels: Counter[str] = Counter()
        self._words: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()

    def add(self, labels: Iterable[str], captions: Iterable[str]) -> None:
        """Count what some items have."""
        self._labels.update(labels)
        words = [_WORD.findall(caption.casefold()) for caption in captions]
        self._words.update(chain.from_iterable(words))
        self._pairs.update(chain.from_iterable(map(pairwise, words)))
        if len(self._pairs) > _MOST_PHRASES:
            self._pairs = Counter({pair: count for pair, count in self._pairs.items() if count >= _RARE})

    def index(self) -> SuggestionIndex:
        """Return what can be suggested."""
        entries = sorted(_entries(self._labels, self._words, self._pairs))
        keys, texts, kinds, counts = zip(*entries, strict=True) if entries else ((), (), (), ())
        pa = search_package("pyarrow")
        return SuggestionIndex(
            pa.record_batch(
                {
                    "key": pa.array(keys, pa.string()),
                    "text": pa.array(texts, pa.string()),
                    "kind": pa.array(kinds, pa.string()),
                    "count": pa.array(counts, pa.int64()),
                }
            )
        )


class SuggestionIndex:
    """Labels, words of captions, and phrases of two words that occur more than once, in alphabetical order."""

    def __init__(self, entries: Any) -> None:
        self._entries = entries
        self._counts: IntArray = entries["count"].to_numpy()

    def beginning_with(self, beginning: str, limit: int) -> list[tuple[str, str, SuggestionKind, int]]:
        """Return key, text, kind and count of the most frequent with a beginning."""
        start, stop = self._place(beginning), self._place(beginning + "\U0010ffff")
        counts = self._counts[start:stop]
        if len(counts) > limit:
            least = np.partition(counts, -limit)[-limit]
            more, equal = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
            some = np.concatenate([more, equal[: limit - len(more)]])
        else:
            some = np.arange(len(counts))
        rows = self._entries.take(search_package("pyarrow").array(start + some)).to_pylist()
        return [(row["key"], row["text"], row["kind"], row["count"]) for row in rows]

    def _place(self, key: str) -> int:
        keys = self._entries["key"]
        return bisect_left(range(len(keys)), key, key=lambda place: keys[place].as_py())

    def write(self, path: Path) -> None:
        """Keep the entries in a file."""
        pa = search_package("pyarrow")
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, self._entries.schema) as writer:
            writer.write_batch(self._entries)


def suggestions(indexes: Sequence[SuggestionIndex], prefix: str, limit: int) -> list[Suggestion]:
    """Return at most ``limit`` ways to go on with a text.

    What begins with the whole text comes first, then what goes on with its last two words, then with its last word;
    the most frequent first in each. Function words alone are never suggested, and no phrase begins or ends with one.

    >>> counts = SuggestionCounts()
    >>> counts.add(["Dog"], ["a red dog", "the red door"])
    >>> [suggestion.text for suggestion in suggestions([counts.index()], "a red do", 3)]
    ['a red Dog', 'a red door']
    """
    found: dict[str, Suggestion] = {}
    for head, rest in _endings(prefix):
        for ending, kind, count in _most_frequent(indexes, rest.casefold(), limit):
            found.setdefault((head + ending).casefold(), Suggestion(head + ending, kind, count))
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
        for key, text, kind, count in index.beginning_with(beginning, depth):
            known = joined.get(key)
            if known is None:
                joined[key] = text, kind, count
            elif kind == known[1]:
                joined[key] = *known[:2], known[2] + count
            elif kind == "label":
                # A label stands for itself wherever it is a word of captions too.
                joined[key] = text, kind, count
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
