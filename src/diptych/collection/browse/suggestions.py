"""Query suggestions: words and phrases of a collection by their beginnings."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.arrays import BoolArray, IntArray
from diptych.collection.storage.layout import search_package

SuggestionKind = Literal["label", "caption", "query"]


@dataclass(frozen=True)
class Suggestion:
    """A whole query, where its last words come from, and how often they occur there."""

    text: str
    kind: SuggestionKind
    count: int


# Stands between captions, which are cut into words together.
_MARK = "\0"
_JOINTS = np.array([ord(joint) for joint in "'’-"], dtype=np.uint32)
_RARE = 2
# Phrases that a million captions hold are mostly seen once; those are dropped now and then.
_MOST_PHRASES = 500_000


class SuggestionCounts:
    """Counts labels, words of captions, and phrases of two words, without those that say nothing."""

    def __init__(self) -> None:
        pa = search_package("pyarrow")
        self._labels: Counter[str] = Counter()
        nothing = pa.table({"key": pa.array([], pa.string()), "count": pa.array([], pa.int64())})
        self._words, self._phrases = nothing, nothing

    def add(self, labels: Iterable[str], captions: Iterable[str]) -> None:
        """Count what some items have."""
        pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
        self._labels.update(labels)
        encoded = pa.array(_cut(f" {_MARK} ".join(captions).casefold()), pa.string()).dictionary_encode()
        words, codes = encoded.dictionary, encoded.indices.to_numpy()
        says_something = _says_something(words)
        counts = np.bincount(codes, minlength=len(words))
        self._words = _joined(self._words, words.filter(says_something), counts[says_something])
        # A word and the next one, where both say something, as a mark does not.
        is_phrase = says_something[codes[:-1]] & says_something[codes[1:]]
        firsts, seconds = codes[:-1][is_phrase].astype(np.int64), codes[1:][is_phrase]
        pairs, counts = np.unique(firsts << 32 | seconds, return_counts=True)
        ends = (words.take(pa.array(places)) for places in (pairs >> 32, pairs & 0xFFFFFFFF))
        self._phrases = _joined(self._phrases, pc.binary_join_element_wise(*ends, " "), counts)
        if len(self._phrases) > _MOST_PHRASES:
            self._phrases = _summed(self._phrases)
        if len(self._phrases) > _MOST_PHRASES:
            self._phrases = _frequent(self._phrases)

    def index(self) -> SuggestionIndex:
        """Return what can be suggested."""
        pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
        named: dict[str, tuple[str, int]] = {}
        for label, count in self._labels.most_common():
            key = " ".join(label.casefold().split())
            if key:
                text, before = named.get(key, (" ".join(label.split()), 0))
                named[key] = text, before + count
        labels = pa.table(
            {
                "key": pa.array(named, pa.string()),
                "text": pa.array([text for text, _ in named.values()], pa.string()),
                "kind": pa.array(["label"] * len(named), pa.string()),
                "count": pa.array([count for _, count in named.values()], pa.int64()),
            }
        )
        said = pa.concat_tables([_summed(self._words), _frequent(_summed(self._phrases))])
        said = said.filter(pc.invert(pc.is_in(said["key"], labels["key"])))
        kinds = pa.array(["caption"] * len(said), pa.string())
        rows = pa.table([said["key"], said["key"], kinds, said["count"]], schema=labels.schema)
        (entries,) = pa.concat_tables([labels, rows]).sort_by("key").combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], labels.schema)
        ]
        return SuggestionIndex(entries)


def _cut(text: str) -> list[str]:
    """Return the words of a text, letters and digits with an apostrophe or hyphen between them, and its marks.

    >>> _cut("the dog's long-haired_ears -")
    ['the', "dog's", 'long-haired', 'ears']
    """
    letters = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    there = np.flatnonzero(np.bincount(letters)) if len(letters) else letters
    is_letter = np.zeros(int(there[-1]) + 1 if len(there) else 0, dtype=bool)
    is_letter[there] = [chr(letter).isalnum() for letter in there.tolist()]
    in_word = is_letter[letters]
    in_word[1:-1] |= np.isin(letters[1:-1], _JOINTS) & in_word[:-2] & in_word[2:]
    in_word |= letters == ord(_MARK)
    return np.where(in_word, letters, np.uint32(ord(" "))).tobytes().decode("utf-32-le").split()


def _says_something(words: Any) -> BoolArray:
    # Encoders bring scikit-learn along, which opening a collection does not need.
    from diptych.encoders.text.word_pipeline import FUNCTION_WORDS

    pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
    is_empty = pc.is_in(words, pa.array(sorted(FUNCTION_WORDS)))
    is_empty = pc.or_(is_empty, pc.or_(pc.less(pc.utf8_length(words), 2), pc.utf8_is_digit(words)))
    return ~np.asarray(is_empty.to_numpy(zero_copy_only=False), dtype=bool)


def _joined(counted: Any, keys: Any, counts: IntArray) -> Any:
    pa = search_package("pyarrow")
    return pa.concat_tables([counted, pa.table({"key": keys, "count": pa.array(counts, pa.int64())})])


def _summed(counted: Any) -> Any:
    """Return every key once, with the sum of its counts."""
    return counted.group_by("key", use_threads=False).aggregate([("count", "sum")]).rename_columns(["key", "count"])


def _frequent(counted: Any) -> Any:
    pc = search_package("pyarrow.compute")
    return counted.filter(pc.greater_equal(counted["count"], _RARE))


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
