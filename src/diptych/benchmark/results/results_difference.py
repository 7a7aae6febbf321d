"""What two runs disagree about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from diptych.benchmark.results.result_records import Record, ResultFolder
from diptych.errors import InvalidInputError
from diptych.metrics import randomisation_test
from diptych.space import DIRECTIONS

_TRIALS = 10_000
_MEASURE = "AP()"


@dataclass(frozen=True)
class UnitDifference:
    """The largest difference between two records of one unit, over all measures and directions."""

    task: str
    method: str
    fold: int
    largest: float
    where: str


@dataclass(frozen=True)
class MethodDifference:
    """How the two runs of one method differ on the queries of all folds: second minus first, and its significance.

    ``p_value`` is that of a paired randomisation test over all queries of both directions, None where the two runs did
    not ask the same number of queries.
    """

    task: str
    method: str
    first: float
    second: float
    p_value: float | None

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first


@dataclass(frozen=True)
class ResultsDifference:
    """Two folders compared: units that differ, methods that do, and what only one of them has."""

    compared: int
    units: tuple[UnitDifference, ...]
    methods: tuple[MethodDifference, ...]
    only_first: tuple[tuple[str, str, int], ...]
    only_second: tuple[tuple[str, str, int], ...]

    @property
    def largest(self) -> float:
        """The largest difference of any number."""
        return max((unit.largest for unit in self.units), default=0.0)


def compare_results(first: ResultFolder, second: ResultFolder, *, tolerance: float = 1e-6) -> ResultsDifference:
    """Compare the numbers of every unit that both folders have; differences up to ``tolerance`` do not count.

    >>> import tempfile
    >>> from diptych.benchmark.results import Record, ResultFolder, compare_results
    >>> record = Record(task="t", dataset="d", setting="seen", features="f", method="cca", method_title="CCA", fold=0,
    ...                 measures={"AP()": {"image_query": 0.5, "text_query": 0.5}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = ResultFolder(folder).write(record)
    ...     compare_results(ResultFolder(folder), ResultFolder(folder)).compared
    1
    """
    if tolerance < 0:
        raise InvalidInputError(f"tolerance must be 0 or more, got {tolerance}")
    left, right = ({record.key: record for record in folder.records()} for folder in (first, second))
    common = sorted(left.keys() & right.keys())
    units = [_unit_difference(left[key], right[key]) for key in common]
    differing = [unit for unit in units if not unit.largest <= tolerance]
    names = {(unit.task, unit.method) for unit in differing}
    pairs = [(left[key], right[key]) for key in common if key[:2] in names]
    grouped = groupby(pairs, key=lambda pair: (pair[0].task, pair[0].method))
    return ResultsDifference(
        len(common),
        tuple(sorted(differing, key=lambda unit: -unit.largest)),
        tuple(_method_difference(task, method, list(group)) for (task, method), group in grouped),
        tuple(sorted(left.keys() - right.keys())),
        tuple(sorted(right.keys() - left.keys())),
    )


def _unit_difference(first: Record, second: Record) -> UnitDifference:
    largest, where = 0.0, ""
    for measure in {**first.measures, **second.measures}:
        for way in DIRECTIONS:
            values = [record.measures.get(measure, {}).get(way, np.nan) for record in (first, second)]
            gap = abs(values[0] - values[1])
            # A number that one side lacks is as far away as can be.
            gap = float("inf") if np.isnan(gap) else float(gap)
            if gap > largest:
                largest, where = gap, f"{measure} {way}"
    return UnitDifference(*first.key, largest, where)


def _method_difference(task: str, method: str, pairs: list[tuple[Record, Record]]) -> MethodDifference:
    first, second = (float(np.mean([_main(pair[side]) for pair in pairs])) for side in (0, 1))
    values = [_queries(pair[side] for pair in pairs) for side in (0, 1)]
    comparable = len(values[0]) == len(values[1]) > 0
    p_value = randomisation_test(*values, trials=_TRIALS).p_value if comparable else None
    return MethodDifference(task, method, first, second, p_value)


def _main(record: Record) -> float:
    return record.average(next(iter(record.measures)))


def _queries(records: Iterable[Record]) -> list[Any]:
    """Return the values of all queries, NaN where there is none."""
    values = [record.per_query.get(_MEASURE, {}).get(way, []) for record in records for way in DIRECTIONS]
    return [np.nan if value is None else value for part in values for value in part]
