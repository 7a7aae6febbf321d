"""What every query contributes to the mean of every method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from diptych.arrays import FloatArray
from diptych.benchmark.reporting.method_results import MethodResults, query_classes
from diptych.benchmark.results import Record
from diptych.errors import InvalidInputError
from diptych.space import DIRECTIONS, Direction

Query = tuple[str, int]


def query_names(record: Record, way: Direction, n_queries: int) -> list[Query]:
    """Name each query by its class and its place among the queries of that class.

    The order inside a class is that of the data set in every fold and for both directions. So the photograph and the
    text of one pair get the same name, in whichever folds their class is asked.
    """
    classes = query_classes(record, way) or [""] * n_queries
    seen: Counter[str] = Counter()
    names = []
    for name in classes:
        names.append((name, seen[name]))
        seen[name] += 1
    return names


def query_shares(methods: Sequence[MethodResults], measure: str) -> FloatArray | None:
    """Return queries × methods, whose columns sum to each method's mean over folds and both directions.

    All methods must have the same folds and queries. A pair of picture and text that is asked several times, in both
    directions and in several folds, is one row: its answers are no independent evidence. None where there
    are no methods, or a record keeps no value of ``measure`` per query.
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
