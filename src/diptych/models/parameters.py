"""Checks of constructor parameters, made in ``fit``: a message names the bound and the value given."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real

from diptych.errors import InvalidInputError


def check_number(name: str, value: object, *, low: float, high: float = math.inf, open_low: bool = False) -> None:
    """Raise unless ``value`` is a finite number in the interval."""
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    if not (math.isfinite(number) and (low < number if open_low else low <= number) and number <= high):
        left, right = "(" if open_low else "[", ")" if high == math.inf else "]"
        raise InvalidInputError(f"{name} must be a number in {left}{low:g}, {high:g}{right}, got {value!r}")


def check_count(name: str, value: object) -> int:
    """Return ``value`` as an int, or raise unless it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InvalidInputError(f"{name} must be an integer of at least 1, got {value!r}")
    return int(value)


def check_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_components(value: int | None, available: int, *, name: str = "n_components") -> int:
    """Return how many components to keep; ``None`` keeps all that are available."""
    return available if value is None else min(check_count(name, value), available)
