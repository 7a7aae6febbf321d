"""Searches one by one: who asked what when, what was shown where, and what of it was clicked."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.learning.position_model import Impressions, PositionModel
from diptych.data.clicks import ClickLog
from diptych.encoders.text.word_pipeline import clean_query

SearchRow = tuple[int, str | None, float, str, int, Sequence[str], Iterable[int]]
_FILLERS = 9
_LEAST_LOOK = 0.002


def word_groups(queries: Sequence[str]) -> IntArray:
    """Return a number for each query, the same for queries of the same words.

    >>> word_groups(["a red ball", "dogs", "balls, red", "the"]).tolist()
    [0, 1, 0, 2]
    """
    numbers: dict[tuple[str, ...], int] = {}
    keys = [tuple(sorted(set(clean_query(query)))) or (query,) for query in queries]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SearchLog:
    """Searches in the order of time, and a row for each item that one showed.

    Of each search: ``query_ids`` (a number of ``queries``), ``visitors`` (a number for each, −1 where unknown) and
    ``times``. Of each row: ``searches`` and ``item_ids`` say which search showed which of ``items``, ``positions``
    count from 1, ``clicked`` says whether it was clicked. ``is_examined`` marks logs in which everything counts as
    looked at, since they tell no positions.

    >>> from diptych.collection.learning import SearchLog
    >>> log = SearchLog.from_searches([
    ...     (7, "v1", 10.0, "red boat", 1, ("a", "b"), {2}), (8, None, 11.0, "boats, red", 1, ("b",), ()),
    ... ])
    >>> log.queries, len(log), log.n_clicks, log.visitors.tolist(), log.clicked.tolist()
    (('red boat',), 2, 1, [0, -1], [False, True, False])
    """

    queries: tuple[str, ...]
    items: tuple[str, ...]
    query_ids: IntArray
    visitors: IntArray
    times: FloatArray
    searches: IntArray
    item_ids: IntArray
    positions: IntArray
    clicked: BoolArray
    is_examined: bool = False

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def n_clicks(self) -> int:
        """How often something was clicked."""
        return int(np.count_nonzero(self.clicked))

    @property
    def has_visitors(self) -> bool:
        """Whether it is known who asked, in most searches."""
        return bool(len(self)) and float(np.mean(self.visitors >= 0)) > 0.5

    @classmethod
    def from_searches(cls, rows: Iterable[SearchRow]) -> Self:
        """Return the log of pages: (search, visitor or None, time, query, first position, items, clicked positions).

        Pages of one search have its number. Queries of the same words are one.
        """
        numbers: dict[int, int] = {}
        queries, items, visitors = _numbers(), _numbers(), _numbers()
        asked, people, times = array("q"), array("q"), array("d")
        of_row = array("i"), array("i"), array("i"), array("b")
        for number, visitor, time, query, first, shown, clicked in rows:
            search = numbers.setdefault(number, len(numbers))
            if search == len(asked):
                asked.append(queries[query])
                people.append(-1 if visitor is None else visitors[visitor])
                times.append(time)
            places = range(first, first + len(shown))
            of_row[0].extend([search] * len(shown))
            of_row[1].extend([items[item] for item in shown])
            of_row[2].extend(places)
            of_row[3].extend([place in clicked for place in places] if (clicked := set(clicked)) else [0] * len(shown))
        searches, shown_items, positions, is_clicked = map(np.array, of_row)
        log = cls(
            tuple(queries),
            tuple(items),
            np.array(asked, dtype=np.int64),
            np.array(people, dtype=np.int64),
            np.array(times, dtype=np.float64),
            searches,
            shown_items,
            positions,
            is_clicked > 0,
        )
        return log._sorted_by(np.argsort(log.times, kind="stable"))._by_words()

    @classmethod
    def from_triads(cls, log: ClickLog, ids: Sequence[str]) -> Self:
        """Return a search for each click of a table, which showed the item among others drawn from ``ids``."""
        rng = np.random.default_rng(0)
        fillers = rng.integers(0, len(ids), size=(int(np.ceil(log.clicks).sum()), _FILLERS))

        def searches() -> Iterator[SearchRow]:
            number = 0
            for query, image, clicks in zip(log.query_ids, log.image_ids, log.clicks, strict=True):
                for _ in range(int(np.ceil(clicks))):
                    wanted = log.images[image]
                    shown = [wanted, *(ids[row] for row in fillers[number] if ids[row] != wanted)]
                    yield number, None, 0.0, log.queries[query], 1, shown, {1}
                    number += 1

        made = cls.from_searches(searches())
        return replace(made._sorted_by(rng.permutation(len(made))), is_examined=True)

    def select(self, chosen: AnyArray) -> Self:
        """Return some searches, given as a mask; queries and items keep their numbers."""
        return self._taken(chosen, chosen[self.searches], np.cumsum(chosen) - 1)

    def _taken(self, searches: AnyArray, rows: AnyArray, number: IntArray) -> Self:
        """Return some searches and rows in their order; ``number`` has the new number of each search."""
        columns = {name: getattr(self, name)[searches] for name in ("query_ids", "visitors", "times")}
        columns |= {name: getattr(self, name)[rows] for name in ("item_ids", "positions", "clicked")}
        return replace(self, searches=number[self.searches[rows]].astype(np.int32), **columns)

    def on_items(self, known: BoolArray) -> Self:
        """Return the log without items that are not ``known``; positions stay those that people saw."""
        rows = known[self.item_ids]
        if rows.all():
            return self
        columns = {name: getattr(self, name)[rows] for name in ("searches", "item_ids", "positions", "clicked")}
        return replace(self, **columns)

    @property
    def voices(self) -> FloatArray:
        """What each search counts: all those of one visitor for one query together count as one."""
        key = self.query_ids * (int(self.visitors.max(initial=0)) + 2) + self.visitors
        _, which, times = np.unique(key, return_inverse=True, return_counts=True)
        return np.where(self.visitors < 0, 1.0, 1.0 / times[which.reshape(-1)])

    @property
    def people(self) -> IntArray:
        """A number for who asked each search; everybody who is unknown is somebody else."""
        unknown = int(self.visitors.max(initial=-1)) + 1 + np.arange(len(self))
        _, numbers = np.unique(np.where(self.visitors < 0, unknown, self.visitors), return_inverse=True)
        return np.asarray(numbers.reshape(-1))

    @property
    def after_click(self) -> BoolArray:
        """Whether something above each row was clicked in the same search."""
        total = np.cumsum(self.clicked)
        first = np.searchsorted(self.searches, np.arange(len(self)))
        before = np.concatenate([[0], total])[first]
        return np.asarray(total - self.clicked > before[self.searches])

    @property
    def pairs(self) -> IntArray:
        """A number for the query and the item of each row."""
        return np.asarray(self.query_ids[self.searches] * max(1, len(self.items)) + self.item_ids)

    def impressions(self) -> Impressions:
        """Return how often each item was shown and clicked at each position, one voice a visitor and query."""
        deepest = int(self.positions.max(initial=1))
        cells = (self.pairs * deepest + self.positions - 1) * 2 + self.after_click
        different, which = np.unique(cells, return_inverse=True)
        weights = self.voices[self.searches]
        shown, clicked = (
            np.bincount(which.reshape(-1), values, len(different)).astype(np.float64)
            for values in (weights, weights * self.clicked)
        )
        places = (different // 2) % deepest + 1
        return Impressions(different // (2 * deepest), places, shown, np.minimum(clicked, shown), different % 2 > 0)

    def _sorted_by(self, order: IntArray) -> Self:
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        return self._taken(order, np.lexsort((self.positions, number[self.searches])), number)

    def _by_words(self) -> Self:
        groups = word_groups(self.queries)
        _, first = np.unique(groups, return_index=True)
        return replace(self, queries=tuple(self.queries[row] for row in first), query_ids=groups[self.query_ids])


@dataclass(frozen=True, eq=False)
class Evidence:
    """Expected looks and clicks of each query's items, one voice a visitor and query; ``places`` are mean positions."""

    query_ids: IntArray
    item_ids: IntArray
    looks: FloatArray
    clicks: FloatArray
    places: FloatArray

    @classmethod
    def of(cls, log: SearchLog, positions: PositionModel) -> Self:
        """Return what a log tells, given how likely people look where."""
        different, which = np.unique(log.pairs, return_inverse=True)
        weights = log.voices[log.searches]
        looks: AnyArray = np.ones(len(log.positions))
        if not log.is_examined:
            looks = positions.examined(log.positions, log.after_click, least=_LEAST_LOOK)
        shown, looked, clicked, places = (
            np.bincount(which.reshape(-1), weights * values, len(different)).astype(np.float64)
            for values in (1.0, looks, log.clicked, log.positions)
        )
        return cls(*np.divmod(different, max(1, len(log.items))), looked, clicked, places / shown)


def _numbers() -> defaultdict[str, int]:
    """Return a dictionary that numbers strings in the order of their first appearance."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers
