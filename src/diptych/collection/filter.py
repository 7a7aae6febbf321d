"""Filters: which items a search considers, as objects and as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from operator import eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Literal, cast

from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.data.photo_facts.places import Box, Circle

_TIMES = ("added", "updated", "modified")
# What every item has; any other field is a metadatum.
OWN_FIELDS = ("id", "path", "name", "kind", "label", "caption", "album", "width", "height", "size", *_TIMES)


@lru_cache(maxsize=4096)
def filter_name(metadatum: str) -> str:
    """Return the field of a filter that stands for a metadatum.

    >>> filter_name("camera"), filter_name("path")
    ('camera', 'meta.path')
    """
    hidden = metadatum.lower() in OWN_FIELDS or metadatum.startswith("meta.")
    return f"meta.{metadatum}" if hidden else metadatum


COMPARISONS = ("!=", ">=", "<=", ":", "=", ">", "<")
_GIVEN_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}(:[0-9]{2}(:[0-9]{2})?)?)?)?)?")
STORED_DATE = re.compile(r"[0-9]{4}-[0-9]{2}")


def given_date(given: str) -> str | None:
    """Return a date, as far as it is written, in the form of stored ones; None for any other text."""
    return given.replace(" ", "T") if _GIVEN_DATE.fullmatch(given) else None


def compare(stored: Any, operator: str, given: str, *, whole: bool) -> bool:
    """Return True if a stored value, or one of several, stands in this relation to a text, part or ``whole``."""
    if operator == "!=":
        return not compare(stored, "=", given, whole=whole)
    if stored is None:
        return False
    if isinstance(stored, (list, tuple)):
        return any(compare(value, operator, given, whole=whole) for value in stored)
    if operator == ":":
        return _matches(stored, given, whole)
    return _ordered(stored, operator, given)


def _matches(value: Any, given: str, whole: bool) -> bool:
    number, other = number_of(value), number_of(given)
    if number is not None and other is not None and not isinstance(value, str):
        return number == other
    stored, given = text_of(value).casefold(), given.casefold()
    if "*" in given or "?" in given:
        return _pattern(given).match(stored) is not None
    return stored == given if whole else given in stored


# Not fnmatchcase, which remembers tens of thousands of patterns, of any length.
@lru_cache(maxsize=64)
def _pattern(given: str) -> re.Pattern[str]:
    # Square brackets are ordinary characters of file names here.
    return re.compile(translate(given.replace("[", "[[]")))


def _ordered(stored: Any, operator: str, given: str) -> bool:
    """Compare both as numbers where both are, as dates cut to the given length, otherwise as texts."""
    number, other = number_of(stored), number_of(given)
    # An id of digits is a name: 007 is not 7.
    is_name = operator == "=" and isinstance(stored, str)
    if number is not None and other is not None and not is_name:
        return bool(_ORDERS[operator](number, other))
    text = text_of(stored)
    date = given_date(given)
    if date is not None and STORED_DATE.match(text):
        text, given = text.replace(" ", "T")[: len(given)], date
    return bool(_ORDERS[operator](text, given))


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, ">=": ge, "<=": le, ">": gt, "<": lt}


def text_of(value: Any) -> str:
    """Return a stored value as filters write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def number_of(value: Any) -> float | None:
    """Return a value as a number, None where it is none."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


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
    ``month:7``            of a number, just that one
    ``album:Summer``       in the album of that title, whatever its capitals; also with ``*`` and ``?``
    ``taken>=2024-05``     dates as far as they are written: ``taken<=2024-05`` includes all of May
    ``near:Lisbon``        taken at most 25 km from there; ``near:"Paris, Texas"``, ``near:38.7,-9.1``
    ``within:20km of X``   taken at most so far from X, a name or coordinates; also ``m`` and ``mi``
    ``within:"A to B"``    taken between two corners, coordinates in the south-west and in the north-east
    ``a and b``, ``a b``   both
    ``a or b``, ``not a``  as they say; not binds before and, and before or; parentheses group
    ====================== =======================================================================================

    Fields are ``id``, ``path``, ``name`` (of the file), ``kind`` (picture or text), ``label``, ``caption``, ``album``,
    ``width``, ``height``, ``size``, ``added``, ``updated``, ``modified``, and the names of metadata and of facts of
    photographs, with dots into nested values; ``meta.path`` is the metadatum called "path". An item without a field
    meets no condition on it, except ``!=`` and ``not``.

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
    # The ids of the items that a condition on albums stands for, once somebody has looked.
    members: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.operator in ("and", "or", "not"):
            if not self.parts or (self.operator == "not" and len(self.parts) != 1):
                raise InvalidInputError(f"a filter with {self.operator!r} needs other filters to join")
        elif self.operator not in COMPARISONS or not self.field:
            raise InvalidInputError(f"a filter compares a field with one of {' '.join(COMPARISONS)}")
        elif self.is_geographic:
            # An unknown place is an error at once, before anything is searched.
            _ = self.region

    @classmethod
    def parse(cls, text: str) -> Filter:
        """Return the filter that a text describes."""
        return parse_filter(text)

    @classmethod
    def of(cls, wanted: Filter | str | None) -> Filter | None:
        """Return a filter or nothing as it is, and parse a text."""
        return parse_filter(wanted) if isinstance(wanted, str) else wanted

    def matches(self, lookup: Lookup) -> bool:
        """Return True if an item meets the condition; ``lookup`` gives the value of a field, or None."""
        if self.operator == "and":
            return all(part.matches(lookup) for part in self.parts)
        if self.operator == "or":
            return any(part.matches(lookup) for part in self.parts)
        if self.operator == "not":
            return not self.parts[0].matches(lookup)
        if self.members is not None:
            return lookup("id") in self.members
        if self.is_geographic:
            where = number_of(lookup("latitude")), number_of(lookup("longitude"))
            return None not in where and bool(self.region.holds(*where))
        return compare(lookup(self.field), self.operator, self.value, whole=self.field.lower() == "label")

    @property
    def is_geographic(self) -> bool:
        """Whether it asks where an item is: it compares ``latitude`` and ``longitude``."""
        return self.operator == ":" and self.field.lower() in ("near", "within")

    @property
    def region(self) -> Circle | Box:
        """The part of the world that a condition on places names."""
        # Imported lazily: few filters need the list of places.
        from diptych.data.photo_facts.places import region_of

        return region_of(self.field.lower(), self.value)

    @property
    def fields(self) -> frozenset[str]:
        """The fields that are compared."""
        if self.parts:
            return frozenset().union(*(part.fields for part in self.parts))
        return frozenset({"latitude", "longitude"} if self.is_geographic else {self.field})

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
    plain = text and not marks.search(text)
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Deeper ones come from no person, and would exhaust the stack.
_DEEPEST = 50

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<bracket>[()])
      | (?P<place>within:\s*[0-9.]+\s*[a-z]+\s+of\s+(?:"[^"]+"|[^\s()"]+))
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
    if match["place"] is not None:
        # The one condition with words between its parts; as a value it stands in quotation marks.
        return Filter(":", field="within", value=" ".join(match["place"].partition(":")[2].replace('"', "").split()))
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
