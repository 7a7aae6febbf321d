"""From text to filter."""

from __future__ import annotations

import re
from typing import cast

from diptych.collection.comparison import COMPARISONS
from diptych.collection.filter import Filter, Operator
from diptych.errors import InvalidInputError

# Deeper ones come from no person, and would exhaust the stack.
_DEEPEST = 50

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<bracket>[()])
      | (?:"(?P<named>(?:[^"\\]|\\.)+)"|(?P<field>[^\s()"':=!<>]+))
        (?P<operator>!=|>=|<=|:|=|>|<)\s*
        (?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s()"=<>][^\s()"]*))
      | (?P<word>and|or|not)(?=[\s(]|$)
    )""",
    re.VERBOSE | re.IGNORECASE,
)


def parse_filter(text: str) -> Filter:
    """Return the filter that a text describes; see :class:`Filter` for the language."""
    tokens = _tokens(text)
    if not tokens:
        raise InvalidInputError("the filter is empty; write something like label:dog and year>=2010")
    result, rest = _either(tokens, text, 0)
    if rest:
        raise InvalidInputError(f"the filter {text!r} has a closing bracket too many; remove it")
    return result


def _tokens(text: str) -> list[str | Filter]:
    tokens: list[str | Filter] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidInputError(
                f"the filter {text!r} is not understood from {text[position:].strip()!r} on; "
                f"write conditions as field, one of {' '.join(COMPARISONS)}, value: label:dog and year>=2010; "
                'a value that begins with an operator goes in quotation marks: mood=">:("'
            )
        tokens.append(_token(match))
        position = match.end()
    return tokens


def _token(match: re.Match[str]) -> str | Filter:
    if match["operator"] is None:
        return match["bracket"] or match["word"].lower()
    field = match["field"] if match["named"] is None else _unquoted(match["named"])
    value = match["bare"] if match["quoted"] is None else _unquoted(match["quoted"])
    return Filter(cast(Operator, match["operator"]), field=field, value=value)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _either(tokens: list[str | Filter], text: str, depth: int) -> tuple[Filter, list[str | Filter]]:
    result, tokens = _both(tokens, text, depth)
    while tokens and tokens[0] == "or":
        other, tokens = _both(tokens[1:], text, depth)
        result = result | other
    return result, tokens


def _both(tokens: list[str | Filter], text: str, depth: int) -> tuple[Filter, list[str | Filter]]:
    result, tokens = _single(tokens, text, depth)
    while tokens and tokens[0] not in ("or", ")"):
        other, tokens = _single(tokens[1:] if tokens[0] == "and" else tokens, text, depth)
        result = result & other
    return result, tokens


def _single(tokens: list[str | Filter], text: str, depth: int) -> tuple[Filter, list[str | Filter]]:
    if not tokens or tokens[0] in ("and", "or", ")"):
        raise InvalidInputError(f"the filter {text!r} lacks a condition; write one like label:dog")
    first, rest = tokens[0], tokens[1:]
    if isinstance(first, Filter):
        return first, rest
    if depth == _DEEPEST:
        raise InvalidInputError(f"the filter is nested more than {_DEEPEST} deep; use fewer brackets and nots")
    if first == "not":
        part, rest = _single(rest, text, depth + 1)
        return ~part, rest
    inner, rest = _either(rest, text, depth + 1)
    if not rest:
        raise InvalidInputError(f"the filter {text!r} lacks a closing bracket; add it")
    return inner, rest[1:]
