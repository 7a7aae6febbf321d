"""One comparison of a filter."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import Any

COMPARISONS = ("!=", ">=", "<=", ":", "=", ">", "<")

_GIVEN_DATE = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d)?)?)?)?)?")
_STORED_DATE = re.compile(r"\d{4}-\d\d")


def compare(stored: Any, operator: str, given: str, *, whole: bool) -> bool:
    """Say whether a stored value, one of several, or none at all, stands in this relation to the given text.

    ``whole`` asks ``:`` for the whole text instead of a part of it.
    """
    if operator == "!=":
        return not compare(stored, "=", given, whole=whole)
    if stored is None:
        return False
    if isinstance(stored, (list, tuple)):
        return any(compare(value, operator, given, whole=whole) for value in stored)
    if operator == ":":
        return _matches(_text(stored), given, whole)
    return _ordered(stored, operator, given)


def _matches(stored: str, given: str, whole: bool) -> bool:
    stored, given = stored.casefold(), given.casefold()
    if "*" in given or "?" in given:
        return _pattern(given).match(stored) is not None
    return stored == given if whole else given in stored


# Not fnmatchcase, which remembers tens of thousands of patterns, of any length.
@lru_cache(maxsize=64)
def _pattern(given: str) -> re.Pattern[str]:
    # Square brackets are ordinary characters of file names here.
    return re.compile(translate(given.replace("[", "[[]")))


def _ordered(stored: Any, operator: str, given: str) -> bool:
    if operator == "=" and isinstance(stored, str):
        # An id of digits is a name: 007 is not 7.
        left, right = _dates_or_texts(stored, given)
        return left == right
    left, right = _comparable(stored, given)
    if operator == "=":
        return bool(left == right)
    if type(left) is not type(right):
        return False
    return bool({">=": left >= right, "<=": left <= right, ">": left > right, "<": left < right}[operator])


def _comparable(stored: Any, given: str) -> tuple[Any, Any]:
    """Return both as numbers where both are, as dates cut to the given length, otherwise as texts."""
    number, other = _number(stored), _number(given)
    if number is not None and other is not None:
        return number, other
    return _dates_or_texts(_text(stored), given)


def _dates_or_texts(text: str, given: str) -> tuple[str, str]:
    if _GIVEN_DATE.fullmatch(given) and _STORED_DATE.match(text):
        return text.replace(" ", "T")[: len(given)], given.replace(" ", "T")
    return text, given


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
