"""A click log as distinct queries: sets of words, which of them share words with another, and their clicks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray
from diptych.data.clicks import ClickLog
from diptych.encoders.text.word_pipeline import clean_query
from diptych.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class WordSets:
    """Sets of words with an inverted index from words to sets.

    Set i holds the words numbered ``members[offsets[i]:offsets[i + 1]]``. The Jaccard similarity |q ∩ q′| / |q ∪ q′| of
    a query with all sets costs only the sets that share a word with it: the others have none.
    """

    words: tuple[str, ...]
    offsets: IntArray
    members: IntArray

    @classmethod
    def of(cls, queries: Iterable[Collection[str]]) -> tuple[Self, IntArray]:
        """Return the distinct sets in order of appearance, and the set of each query, −1 for one without words."""
        row_of: dict[str, int] = {}
        set_of: dict[tuple[int, ...], int] = {}
        owners = []
        for query in queries:
            rows = tuple(sorted({row_of.setdefault(word, len(row_of)) for word in query}))
            owners.append(set_of.setdefault(rows, len(set_of)) if rows else -1)
        offsets = np.zeros(len(set_of) + 1, dtype=np.int64)
        np.cumsum([len(rows) for rows in set_of], out=offsets[1:])
        members = np.fromiter((row for rows in set_of for row in rows), dtype=np.int32, count=int(offsets[-1]))
        return cls(tuple(row_of), offsets, members), np.array(owners, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> tuple[str, ...]:
        rows = self.members[self.offsets[number] : self.offsets[number + 1]]
        return tuple(sorted(self.words[row] for row in rows))

    def reordered(self, order: IntArray) -> Self:
        """Return the same sets, number ``order[i]`` at place i."""
        sizes = self.sizes[order]
        offsets = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(sizes, out=offsets[1:])
        # Where each member comes from: the start of its old set, plus its place within the set.
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][order] - offsets[:-1], sizes)
        return type(self)(self.words, offsets, self.members[places])

    def similarities(self, words: Collection[str]) -> tuple[IntArray, FloatArray]:
        """Return the sets that share a word with ``words``, in ascending order, and their Jaccard similarities."""
        wanted = set(words)
        rows = [self.row_of[word] for word in wanted if word in self.row_of]
        if not rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        starts, holders = self._holders
        lists = [holders[starts[row] : starts[row + 1]] for row in rows]
        found, common = np.unique(np.concatenate(lists), return_counts=True)
        return found.astype(np.int64), common / (len(wanted) + self.sizes[found] - common)

    def nearest(self, words: Collection[str], count: int, least: float = 0.0) -> tuple[IntArray, FloatArray]:
        """Return the ``count`` most similar sets of similarity ``least`` or more, best first; of equals the earlier."""
        found, similarities = self.similarities(words)
        if len(found) > count:
            least = max(least, float(np.partition(similarities, -count)[-count]))
        near = similarities >= least
        found, similarities = found[near], similarities[near]
        order = np.argsort(-similarities, kind="stable")[:count]
        return found[order], similarities[order]

    @cached_property
    def sizes(self) -> IntArray:
        return np.diff(self.offsets)

    @cached_property
    def row_of(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def _holders(self) -> tuple[IntArray, IntArray]:
        """Where the list of each word starts, and the sets that hold it, ascending."""
        starts = np.zeros(len(self.words) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.members, minlength=len(self.words)), out=starts[1:])
        owners = np.repeat(np.arange(len(self), dtype=np.int32), self.sizes)
        return starts, owners[np.argsort(self.members, kind="stable")]


def query_table(log: ClickLog) -> tuple[WordSets, scipy.sparse.csr_array]:
    """Return the distinct queries of a log as sets of words, and the (queries, pictures) matrix of clicks.

    Log queries of the same words are one query, whose clicks are added. The most clicked come first; queries without a
    word that counts are left out.

    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models.clicks._queries import query_table
    >>> log = ClickLog.from_triads(["cat", "red boat", "boats, red"], ["1.jpg", "2.jpg", "2.jpg"], [3, 2, 2])
    >>> sets, clicks = query_table(log)
    >>> sets[0], clicks.toarray().tolist()
    (('boat', 'red'), [[0.0, 4.0], [3.0, 0.0]])
    """
    sets, owners = WordSets.of(clean_query(query) for query in log.queries)
    if len(sets) == 0:
        raise InvalidInputError("no query of the log has a word left after cleaning; pass a log with words")
    rows = owners[log.query_ids]
    entries = (log.clicks[rows >= 0].astype(np.float64), (rows[rows >= 0], log.image_ids[rows >= 0]))
    table = scipy.sparse.csr_array(entries, shape=(len(sets), len(log.images)))
    table.sum_duplicates()
    order = np.argsort(-table.sum(axis=1), kind="stable")
    return sets.reordered(order), table[order]
