"""Arguments that need no check: defaults, words, whole numbers, choices as they are spelt, and paths that can be read.

Newer versions of Typer hand every argument to Pydantic, also one that nobody gave. Importing that takes longer than a
search that a service answers. What is not plainly right goes there still, and what is wrong is refused in its words.
"""

from __future__ import annotations

import os
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

_MOST_DIGITS = 9


def take_plain_arguments(parameters: list[Any]) -> list[Any]:
    """Return the parameters of a command, which take what is plainly right as it is."""
    for parameter in parameters:
        # Older versions convert by themselves, without importing anything.
        if hasattr(parameter, "type_descriptor") and "process_value" not in vars(parameter):
            parameter.process_value = partial(_processed, parameter, parameter.process_value)
    return parameters


def _processed(parameter: Any, check: Any, ctx: Any, value: Any) -> Any:
    try:
        taken = _taken(parameter, value)
    except (_NotPlainError, AttributeError):
        # So does a version of Typer that describes its parameters in another way.
        return check(ctx, value)
    return taken if parameter.callback is None else parameter.callback(ctx, parameter, taken)


class _NotPlainError(Exception):
    """Says that an argument has to be looked at more closely."""


def _taken(parameter: Any, value: Any) -> Any:
    described = parameter.type_descriptor
    is_many = parameter.multiple or parameter.nargs == -1
    if described.parameter_info.parser is not None or (parameter.required and parameter.value_is_missing(value)):
        raise _NotPlainError
    if value is None:
        return () if is_many else None
    if not is_many:
        return _plain(described.annotation, described.parameter_info, value)
    if described.annotation == list[str] and not isinstance(value, str):
        return [_plain(str, described.parameter_info, each) for each in value]
    raise _NotPlainError


def _plain(kind: Any, about: Any, value: Any) -> Any:
    """Return a value as the kind that is asked for, or raise."""
    if type(value) is kind and kind is not Path:
        return value
    if type(value) is str:
        if kind is int and value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
            number = int(value)
            if (about.min is None or number >= about.min) and (about.max is None or number <= about.max):
                return number
        elif isinstance(kind, type) and issubclass(kind, Enum):
            for member in kind:
                if member.value == value:
                    return member
        elif kind is Path and _is_any_path(about) and (os.access(value, os.R_OK) or not os.path.lexists(value)):
            return Path(value)
    raise _NotPlainError


def _is_any_path(about: Any) -> bool:
    """Say whether a path is asked for that can be read or is not there, and nothing else of it."""
    asks_more = about.exists or about.writable or about.resolve_path or about.allow_dash or about.path_type
    return bool(about.file_okay and about.dir_okay and not asks_more)
