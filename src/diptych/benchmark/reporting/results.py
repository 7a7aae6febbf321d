"""What one method reached on one task over its folds, all methods of a task, and those of seen and unseen classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.benchmark.reporting.significance import Comparison, compare_all, group_letters
from diptych.benchmark.results import Record
from diptych.errors import InvalidInputError
from diptych.space import DIRECTIONS, Direction

AVERAGE_PRECISION = "AP()"
RANK_ONE = "CMC@1"
_ROUNDING = 1e-6
Query = tuple[str, int]

CHANCE_METHODS = frozenset({"random"})


class MethodResults:
    """The records of one method on one task, one for each fold, in the order of folds.

    ``title`` is what a reader sees, ``group`` the family of the method, ``n_bits`` the length of its codes if it is a
    hashing method. Wherever ``way`` may be left out, the value is the mean of both directions. Means and deviations are
    over folds, and deviations of a single fold are None.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = tuple(records)
        self.folds = tuple(record.fold for record in records)
        first = records[0]
        self.name, self.title, self.group, self.n_bits = first.method, first.method_title, first.group, first.n_bits

    @property
    def family(self) -> str:
        """The short name without the number of bits, which codes of several lengths share."""
        return self.name.removesuffix(f"-{self.n_bits}")

    @property
    def family_title(self) -> str:
        """The title without the number of bits."""
        return self.title.partition(f", {self.n_bits} bit")[0]

    def per_fold(self, measure: str = AVERAGE_PRECISION, way: Direction | None = None) -> FloatArray:
        """Return a measure for each fold."""
        return _over_folds([record.measures[measure] for record in self.records], way)

    def chance_per_fold(self, measure: str = AVERAGE_PRECISION, way: Direction | None = None) -> FloatArray:
        """Return what a ranking that prefers nothing would have, for each fold."""
        return _over_folds([record.chance[measure] for record in self.records], way)

    def mean(self, measure: str = AVERAGE_PRECISION, way: Direction | None = None) -> float:
        """Return the mean over folds."""
        return float(self.per_fold(measure, way).mean())

    def deviation(self, measure: str = AVERAGE_PRECISION, way: Direction | None = None) -> float | None:
        """Return the standard deviation over folds."""
        return float(self.per_fold(measure, way).std(ddof=1)) if len(self.records) > 1 else None

    def chance(self, measure: str = AVERAGE_PRECISION, way: Direction | None = None) -> float:
        """Return the mean chance level."""
        return float(self.chance_per_fold(measure, way).mean())

    def above_chance(self, measure: str = AVERAGE_PRECISION, way: Direction | None = None) -> float:
        """Return the mean minus the chance level."""
        return self.mean(measure, way) - self.chance(measure, way)

    def seconds(self, stage: str) -> float:
        """Return the mean time of a stage: tune, fit, encode or evaluate."""
        return float(np.mean([record.seconds.get(stage) or 0.0 for record in self.records]))

    @property
    def peak_memory(self) -> float | None:
        """The largest peak of memory in bytes, where it was measured."""
        measured = [record.peak_memory_bytes for record in self.records if record.peak_memory_bytes]
        return float(max(measured)) if measured else None

    def curve(self, name: str, way: Direction) -> tuple[FloatArray, FloatArray] | None:
        """Return a curve, averaged over folds at the points that all folds have; None where none was kept."""
        curves = [record.curves.get(name, {}).get(way) for record in self.records]
        if not all(curves):
            return None
        points = [dict(zip(curve["x"], curve["y"], strict=True)) for curve in curves if curve]
        shared = sorted(set.intersection(*(set(known) for known in points)))
        heights = [float(np.mean([known[x] for known in points])) for x in shared]
        return np.array(shared, dtype=np.float64), np.array(heights)

    def per_query(self, measure: str, fold: int, way: Direction) -> FloatArray | None:
        """Return the value of every query of a fold, NaN where one has no relevant item; None where none was kept."""
        record = next(record for record in self.records if record.fold == fold)
        values = record.per_query.get(measure, {}).get(way)
        if values is not None:
            return np.array(values, dtype=np.float64)
        return _first_is_right(record, way) if measure == RANK_ONE else None

    def has_per_query(self, measure: str) -> bool:
        """Return True if every fold keeps this measure for every query."""
        return all(self.per_query(measure, fold, way) is not None for fold in self.folds for way in DIRECTIONS)

    def category_means(self, way: Direction, measure: str = AVERAGE_PRECISION) -> dict[str, float]:
        """Return the mean over the queries of each class, all folds together."""
        collected: dict[str, list[float]] = {}
        for record in self.records:
            values, classes = self.per_query(measure, record.fold, way), query_classes(record, way)
            if values is None or classes is None:
                continue
            for name, value in zip(classes, values.tolist(), strict=True):
                if not np.isnan(value):
                    collected.setdefault(name, []).append(value)
        return {name: float(np.mean(values)) for name, values in sorted(collected.items())}

    def confusion(self, way: Direction) -> tuple[tuple[str, ...], FloatArray] | None:
        """Return class names and the counts of all folds together, rows are true classes; None where none was kept."""
        kept = [(record, record.confusion[way]) for record in self.records if record.confusion]
        if not kept:
            return None
        names = tuple(sorted({name for record, matrix in kept for name in _class_names(record, matrix)}))
        total = np.zeros((len(names), len(names)))
        for record, matrix in kept:
            positions = [names.index(name) for name in _class_names(record, matrix)]
            counts = matrix["counts"] if isinstance(matrix, Mapping) else matrix
            total[np.ix_(positions, positions)] += np.asarray(counts, dtype=np.float64)
        asked = np.flatnonzero(total.sum(axis=0) + total.sum(axis=1) > 0)
        return tuple(names[position] for position in asked), total[np.ix_(asked, asked)]


def _over_folds(values: Sequence[Mapping[Direction, float]], way: Direction | None) -> FloatArray:
    return np.array([np.mean([fold[one] for one in (DIRECTIONS if way is None else (way,))]) for fold in values])


def _first_is_right(record: Record, way: Direction) -> FloatArray | None:
    """Return for every query whether its first answer is right, from the ranks of the first right answers."""
    ranks = record.per_query.get("first_rank", {}).get(way)
    if ranks is None or RANK_ONE not in record.measures:
        return None
    expected = np.array(ranks, dtype=np.float64)
    first = np.where(np.isnan(expected), np.nan, expected <= 1)
    mean = float(np.nanmean(first))
    # Where answers tie, ranks are expectations and do not tell; the mean gives that away.
    return first if abs(mean - record.measures[RANK_ONE][way]) < _ROUNDING else None


def query_classes(record: Record, way: Direction) -> list[str] | None:
    """Return the name of the class of every query; None where queries have none, or several."""
    numbers = record.query_classes.get(way)
    if not numbers or not all(isinstance(number, int) for number in numbers):
        return None
    return [str(record.classes[number]) for number in numbers]


def _class_names(record: Record, matrix: Any) -> list[str]:
    names = matrix.get("classes", record.classes) if isinstance(matrix, Mapping) else record.classes
    return [str(name) for name in names]


def query_names(record: Record, way: Direction, n_queries: int) -> list[Query]:
    """Name each query by its class and its place among the queries of that class.

    That order is the data set's in every fold and direction, so that a photograph and its text get the same name.
    """
    seen: Counter[str] = Counter()
    names = []
    for name in query_classes(record, way) or [""] * n_queries:
        names.append((name, seen[name]))
        seen[name] += 1
    return names


def query_shares(methods: Sequence[MethodResults], measure: str) -> FloatArray | None:
    """Return queries × methods, whose columns sum to each method's mean over folds and both directions.

    A pair of picture and text that is asked several times, in both directions and in several folds, is one row: its
    answers are no independent evidence. None without methods, or where a record keeps no ``measure`` per query.
    """
    if not methods:
        return None
    rows: dict[Query, FloatArray] = {}
    folds = methods[0].folds
    for fold in folds:
        for way in DIRECTIONS:
            values = [method.per_query(measure, fold, way) for method in methods]
            known = [value for value in values if value is not None]
            if len(known) < len(methods):
                return None
            if len({len(value) for value in known}) > 1:
                raise InvalidInputError(
                    f"records of task {methods[0].records[0].task!r}, fold {fold}, hold different numbers of queries "
                    "for different methods; run them again with the same data"
                )
            table = np.stack(known, axis=1)
            answered = ~np.isnan(table).any(axis=1)
            weight = 1 / (len(folds) * len(DIRECTIONS) * max(1, int(answered.sum())))
            record = next(record for record in methods[0].records if record.fold == fold)
            for query, row in zip(query_names(record, way, len(table)), table * weight, strict=True):
                if not np.isnan(row).any():
                    rows[query] = rows[query] + row if query in rows else row
    return np.stack(list(rows.values())) if rows else None


def mean_by_query(method: MethodResults, measure: str) -> dict[Query, float]:
    """Return for every query its mean value above the chance level of where it was asked."""
    collected: dict[Query, list[float]] = {}
    for record in method.records:
        for way in DIRECTIONS:
            values = method.per_query(measure, record.fold, way)
            if values is None:
                continue
            chance = record.chance[measure][way]
            for query, value in zip(query_names(record, way, len(values)), values.tolist(), strict=True):
                if not np.isnan(value):
                    collected.setdefault(query, []).append(value - chance)
    return {query: float(np.mean(values)) for query, values in collected.items()}


class TaskResults:
    """The methods of one task, best first, and what can be said about the differences between them.

    ``setting`` is seen, unseen or standard; ``features`` says what pictures and texts were described by. ``family`` is
    the name without its setting, which the seen and the unseen task of one experiment share. ``folds`` are those that
    at least one method was run on.
    """

    def __init__(self, methods: Sequence[MethodResults]) -> None:
        self.methods = tuple(methods)
        self.folds = tuple(sorted({fold for method in methods for fold in method.folds}))
        first = methods[0].records[0]
        self.name, self.dataset, self.setting, self.features = first.task, first.dataset, first.setting, first.features
        self.family = self.name.removesuffix(f"-{self.setting}")
        self._comparisons: dict[str, Comparison | None] = {}

    @property
    def title(self) -> str:
        """The task for a reader."""
        dataset = self.dataset.replace("_", " ").capitalize()
        return dataset if self.setting == "standard" else f"{dataset}, {self.setting} classes"

    @cached_property
    def complete(self) -> tuple[MethodResults, ...]:
        """The methods that were run on every fold, best first; only these are compared."""
        return tuple(method for method in self.methods if method.folds == self.folds)

    def comparable_methods(self, measure: str = AVERAGE_PRECISION) -> tuple[MethodResults, ...]:
        """Return the complete methods whose records keep this measure for every query."""
        return tuple(method for method in self.complete if method.has_per_query(measure))

    def comparison(self, measure: str = AVERAGE_PRECISION) -> Comparison | None:
        """Return the tests of all pairs of the compared methods; None where there are none."""
        if measure not in self._comparisons:
            shares = query_shares(self.comparable_methods(measure), measure)
            self._comparisons[measure] = None if shares is None else compare_all(shares)
        return self._comparisons[measure]

    @cached_property
    def letters(self) -> dict[str, str]:
        """Letters for every compared method; those that share one cannot be told apart."""
        compared = self.comparison()
        if compared is None:
            return {}
        letters = group_letters(compared.differs())
        return {method.name: letter for method, letter in zip(self.comparable_methods(), letters, strict=True)}

    @cached_property
    def chance(self) -> float:
        """The chance level of MAP, over all folds and both directions."""
        return float(np.mean([method.chance() for method in (self.complete or self.methods)]))

    def method(self, name: str) -> MethodResults | None:
        """Return the method of that short name, or None."""
        return next((method for method in self.methods if method.name == name), None)

    def all_have_measure(self, measure: str) -> bool:
        """Return True if every method has this measure."""
        return all(measure in record.measures for method in self.methods for record in method.records)


def group_records(records: Iterable[Record]) -> tuple[TaskResults, ...]:
    """Sort records by task and method; tasks by name, methods from the best to the worst."""
    tasks: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        tasks.setdefault(record.task, {}).setdefault(record.method, []).append(record)
    sorted_tasks = []
    for name in sorted(tasks):
        results = [MethodResults(sorted(found, key=lambda record: record.fold)) for found in tasks[name].values()]
        sorted_tasks.append(TaskResults(sorted(results, key=lambda method: (-method.mean(), method.name))))
    return tuple(sorted_tasks)


@dataclass(frozen=True, eq=False)
class Experiment:
    """The seen and the unseen task that share data, features and folds."""

    seen: TaskResults
    unseen: TaskResults

    @property
    def title(self) -> str:
        """The data set for a reader."""
        return self.seen.dataset.replace("_", " ").capitalize()

    @property
    def folds(self) -> tuple[int, ...]:
        """The folds of both tasks."""
        return tuple(fold for fold in self.seen.folds if fold in self.unseen.folds)

    @cached_property
    def method_pairs(self) -> tuple[tuple[MethodResults, MethodResults], ...]:
        """Every method that learns and was run on all folds of both tasks, as (seen, unseen), best on seen first."""
        learning = [method for method in self.seen.complete if method.name not in CHANCE_METHODS]
        pairs = [(method, self.unseen.method(method.name)) for method in learning]
        return tuple((method, other) for method, other in pairs if other is not None and other.folds == method.folds)

    @cached_property
    def by_query(self) -> tuple[FloatArray, FloatArray] | None:
        """AP above chance, queries × methods, on seen and on unseen classes.

        The queries are those whose class was learned in some folds and not in others; a row is the same query in both.
        None where there is none, or records keep no values per query.
        """
        settings = [[mean_by_query(pair[side], AVERAGE_PRECISION) for pair in self.method_pairs] for side in (0, 1)]
        tables = [table for setting in settings for table in setting]
        shared = sorted(set.intersection(*map(set, tables))) if tables else []
        if not shared:
            return None
        seen, unseen = (np.array([[table[query] for table in setting] for query in shared]) for setting in settings)
        return seen, unseen


def find_experiments(tasks: Sequence[TaskResults]) -> tuple[Experiment, ...]:
    """Pair the seen and the unseen task of every experiment."""
    by_place = {(task.family, task.setting): task for task in tasks}
    return tuple(
        Experiment(task, by_place[family, "unseen"])
        for (family, setting), task in by_place.items()
        if setting == "seen" and (family, "unseen") in by_place
    )
