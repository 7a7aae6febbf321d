"""``name=value`` as people type it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from diptych.errors import InvalidInputError

_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse_value(text: str) -> Any:
    """Read a value as JSON where it is JSON, as Python writes it where that is usual, and else as a string.

    >>> from diptych.cli.assignments import parse_value
    >>> [parse_value(text) for text in ("9", "1e-3", ".5", "true", "None", "null", "pearson", '"9"', "[1, 2]")]
    [9, 0.001, 0.5, True, None, None, 'pearson', '9', [1, 2]]
    """
    if text in _PYTHON_WORDS:
        return _PYTHON_WORDS[text]
    try:
        return json.loads(text)
    except ValueError:
        return float(text) if _NUMBER.fullmatch(text) else text


def parse_assignments(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Read every ``name=value``; ``option`` is where they were typed.

    >>> from diptych.cli.assignments import parse_assignments
    >>> parse_assignments(["C=10", "correlation=kcca"], "--param")
    {'C': 10, 'correlation': 'kcca'}
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        name = name.strip()
        if not mark or not name:
            raise InvalidInputError(f"{option} takes name=value, got {text!r}")
        if name in values:
            raise InvalidInputError(f"{option} sets {name!r} twice; give it once")
        values[name] = parse_value(value.strip())
    return values
