"""Definitions written out plainly, and their averages over every order of tied items."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

Order = list[float]


def orders(scores: list[float], grades: list[float]) -> Iterator[Order]:
    """Yield the grades along every ranking that the scores allow."""
    groups = [
        [grade for score, grade in zip(scores, grades, strict=True) if score == value]
        for value in sorted(set(scores), reverse=True)
    ]
    for parts in itertools.product(*(list(itertools.permutations(group)) for group in groups)):
        yield list(itertools.chain.from_iterable(parts))


def expectation(value: Callable[[Order], float], scores: list[float], grades: list[float]) -> float:
    return float(np.mean([value(order) for order in orders(scores, grades)]))


def average_precision(order: Order, cutoff: int | None, denominator: str) -> float:
    cutoff = len(order) if cutoff is None else min(cutoff, len(order))
    hits = [position for position, grade in enumerate(order, start=1) if grade > 0]
    found = [position for position in hits if position <= cutoff]
    total = sum((index / position for index, position in enumerate(found, start=1)), 0.0)
    divisor = {"total": len(hits), "retrieved": len(found), "min": min(len(hits), cutoff)}[denominator]
    return total / divisor if divisor else 0.0


def precision(order: Order, cutoff: int) -> float:
    cutoff = min(cutoff, len(order))
    return sum(grade > 0 for grade in order[:cutoff]) / cutoff


def recall(order: Order, cutoff: int) -> float:
    return sum(grade > 0 for grade in order[:cutoff]) / sum(grade > 0 for grade in order)


def first_rank(order: Order) -> int:
    return next(position for position, grade in enumerate(order, start=1) if grade > 0)


def gain(order: Order, cutoff: int | None) -> float:
    return sum((2**grade - 1) / math.log2(position + 1) for position, grade in enumerate(order[:cutoff], start=1))


def interpolated(order: Order, level: float) -> float:
    total = sum(grade > 0 for grade in order)
    return max(
        precision(order, cutoff)
        for cutoff in range(1, len(order) + 1)
        if recall(order, cutoff) * total >= level * total - 1e-9
    )
