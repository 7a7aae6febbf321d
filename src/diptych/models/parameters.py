"""Checks of constructor parameters, made in ``fit``: a message names the bound and the value given."""

from __future__ import annotations

from collections.abc import Collection

from diptych.errors import InvalidInputError


def check_number(name: str, value: float, *, low: float, high: float = float("inf"), open_low: bool = False) -> None:
    """Raise unless ``value`` is a number in the interval."""
    bracket = "(" if open_low else "["
    inside = isinstance(value, int | float) and (low < value if open_low else low <= value) and value <= high
    if isinstance(value, bool) or not inside:
        raise InvalidInputError(f"{name} must be a number in {bracket}{low}, {high}], got {value!r}")


def check_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_components(value: int | None, available: int) -> int:
    """Return how many components to keep; ``None`` keeps all that are available."""
    if value is None:
        return available
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInputError(f"n_components must be an integer of at least 1 or None, got {value!r}")
    return min(value, available)
