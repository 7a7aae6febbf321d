"""What the parameters of a method may be: declared with their types, and checked before a fit."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from diptych.errors import InvalidInputError
from diptych.estimators import parameter_types


class Interval(NamedTuple):
    """The finite numbers from ``low`` to ``high``, without ``low`` where it is open."""

    low: float = 0
    high: float = math.inf
    open_low: bool = False


COUNT = "a whole number of at least 1"
Count = Annotated[int, COUNT]
NonNegative = Annotated[float, Interval(0)]
Positive = Annotated[float, Interval(0, open_low=True)]
Fraction = Annotated[float, Interval(0, 1)]
PositiveFraction = Annotated[float, Interval(0, 1, open_low=True)]
DropoutShare = Annotated[float, Interval(0, 0.99)]
HeldOutShare = Annotated[float, Interval(0, 0.9)]
Ridge = NonNegative | Literal["auto"]
"""A ridge relative to the mean variance of a feature, or ``"auto"``: as cross-validation chooses it."""


def check_parameters(model: Any) -> None:
    """Raise for a parameter that is not what its type says: a number in an interval, a count or one of some words.

    >>> from diptych.models import CCA
    >>> check_parameters(CCA(weight_power=-1))
    Traceback (most recent call last):
    diptych.errors.InvalidInputError: weight_power must be a number in [0, inf), got -1
    """
    cls: Any = type(model)
    for name, kind in _declared(cls).items():
        _check(name, getattr(model, name), kind)


@cache
def _declared(cls: Any) -> dict[str, Any]:
    try:
        types = parameter_types(cls, include_extras=True)
    except NameError:
        # The annotations of a class that was written inside a function may use names from there.
        return {}
    return {name: types[name] for name in cls._parameters() if name in types}


def _check(name: str, value: Any, kind: Any) -> None:
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        words = [word for other in arguments if get_origin(other) is Literal for word in get_args(other)]
        others = [other for other in arguments if other is not NoneType and get_origin(other) is not Literal]
        is_named = (value is None and NoneType in arguments) or (isinstance(value, str) and value in words)
        if is_named:
            return
        if len(others) == 1:
            _check(f"{name}, if not {' or '.join(map(repr, words))}," if words else name, value, others[0])
        elif words and not others:
            check_choice(name, value, words)
    elif get_origin(kind) is Literal:
        check_choice(name, value, arguments)
    elif kind is bool:
        check_choice(name, value, (False, True))
    elif get_origin(kind) is tuple and arguments[-1] is Ellipsis:
        check_each(name, value, arguments[0])
    elif get_origin(kind) is Annotated:
        for meaning in arguments[1:]:
            if isinstance(meaning, Interval):
                check_number(name, value, *meaning)
            elif meaning == COUNT:
                check_count(name, value)


def check_each(name: str, values: Any, kind: Any) -> None:
    """Raise unless ``values`` are a tuple or list whose entries all are of the kind."""
    if not isinstance(values, tuple | list):
        raise InvalidInputError(f"{name} must be a tuple such as (512, 256), got {values!r}")
    for value in values:
        _check(f"each of {name}", value, kind)


def check_number(name: str, value: object, low: float = 0, high: float = math.inf, open_low: bool = False) -> None:
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
