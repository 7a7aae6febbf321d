"""Which items a search considers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from diptych.collection.comparison import COMPARISONS, compare
from diptych.errors import InvalidInputError

Lookup = Callable[[str], Any]
Operator = Literal["and", "or", "not", ":", "=", "!=", ">=", "<=", ">", "<"]


@dataclass(frozen=True)
class Filter:
    """A condition on items, immutable and combinable with ``&``, ``|`` and ``~``.

    As text, ``Filter.parse`` understands (words of the language in any case):

    ====================== =======================================================================================
    ``label:dog``          some label is "dog"; ``*`` and ``?`` stand for any letters, case does not matter
    ``caption:boat``       some caption holds "boat"; so for every text field without wildcards
    ``path:holiday/*``     the whole path matches, ``*`` crosses folders
    ``camera="X T"``       exactly equal; quotes keep spaces and operators, also in names: ``"shot by"=me``
    ``year>=2010``         numbers by value (also ``>``, ``<``, ``<=``, ``!=``)
    ``added>=2024-05``     dates as far as they are written: ``added<=2024-05`` includes all of May
    ``a and b``, ``a b``   both
    ``a or b``, ``not a``  as they say; not binds before and, and before or; parentheses group
    ====================== =======================================================================================

    Fields are ``id``, ``path``, ``name`` (of the file), ``kind`` (picture or text), ``label``, ``caption``, ``width``,
    ``height``, ``size``, ``added``, ``updated``, ``modified``, and the names of the metadata, with dots into nested
    values; ``meta.path`` is the metadatum called "path". An item without a field meets no condition on it, except
    ``!=`` and ``not``.

    >>> from diptych.collection import Filter
    >>> wanted = Filter.parse('label:dog and (year>=2010 or camera="X T")')
    >>> print(wanted & ~Filter.parse("path:old/*"))
    label:dog and (year>=2010 or camera="X T") and not path:old/*
    >>> wanted.matches({"label": ("Dog", "snow"), "year": 2012}.get)
    True
    """

    operator: Operator
    parts: tuple[Filter, ...] = ()
    field: str = ""
    value: str = ""

    def __post_init__(self) -> None:
        if self.operator in ("and", "or", "not"):
            if not self.parts or (self.operator == "not" and len(self.parts) != 1):
                raise InvalidInputError(f"a filter with {self.operator!r} needs other filters to join")
        elif self.operator not in COMPARISONS or not self.field:
            raise InvalidInputError(f"a filter compares a field with one of {' '.join(COMPARISONS)}")

    @classmethod
    def parse(cls, text: str) -> Filter:
        """Return the filter that a text describes."""
        from diptych.collection.filter_parser import parse_filter

        return parse_filter(text)

    def matches(self, lookup: Lookup) -> bool:
        """Say whether an item meets the condition; ``lookup`` gives the value of a field, or None."""
        if self.operator == "and":
            return all(part.matches(lookup) for part in self.parts)
        if self.operator == "or":
            return any(part.matches(lookup) for part in self.parts)
        if self.operator == "not":
            return not self.parts[0].matches(lookup)
        return compare(lookup(self.field), self.operator, self.value, whole=self.field.lower() == "label")

    @property
    def fields(self) -> frozenset[str]:
        """The fields that are compared."""
        if self.parts:
            return frozenset().union(*(part.fields for part in self.parts))
        return frozenset({self.field})

    def __and__(self, other: Filter) -> Filter:
        return Filter("and", (*self._joined("and"), *other._joined("and")))

    def __or__(self, other: Filter) -> Filter:
        return Filter("or", (*self._joined("or"), *other._joined("or")))

    def __invert__(self) -> Filter:
        return Filter("not", (self,))

    def _joined(self, operator: str) -> tuple[Filter, ...]:
        return self.parts if self.operator == operator else (self,)

    def __str__(self) -> str:
        if self.operator == "not":
            return f"not {self._grouped(self.parts[0])}"
        if self.operator in ("and", "or"):
            return f" {self.operator} ".join(self._grouped(part) for part in self.parts)
        return f"{_quoted(self.field, _FIELD_MARKS)}{self.operator}{_quoted(self.value, _VALUE_MARKS)}"

    @staticmethod
    def _grouped(part: Filter) -> str:
        return f"({part})" if part.operator in ("and", "or") else str(part)


_VALUE_MARKS = re.compile(r"""^[=<>]|[\s"()\\]""")
_FIELD_MARKS = re.compile(r"""[\s"'():=!<>\\]""")


def _quoted(text: str, marks: re.Pattern[str]) -> str:
    """Return a text as the parser takes it: in quotation marks where it would be read as something else."""
    plain = text and not marks.search(text)
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
