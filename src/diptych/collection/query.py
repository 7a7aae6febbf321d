"""What is searched for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diptych.collection.term import Term
from diptych.errors import InvalidInputError

_OPERATOR = re.compile(r"(^|\s)[+-](\s|$)")


@dataclass(frozen=True, eq=False)
class Query:
    """A weighted sum of words, pictures and stored items; minus asks for what is unlike a term.

    >>> from diptych.collection import Query
    >>> query = 2 * Query.text("golden retriever") + Query.picture("photo.jpg") - Query.text("snow")
    >>> print(query)
    2:golden retriever + photo.jpg - snow
    """

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if not self.terms:
            raise InvalidInputError("the query is empty; write what to look for")

    @classmethod
    def text(cls, words: str) -> Query:
        """Ask for words, exactly as they are."""
        return cls((Term("text", words),))

    @classmethod
    def picture(cls, picture: Any) -> Query:
        """Ask for what resembles a picture: a path, an array of bytes or a Pillow image."""
        return cls((Term("picture", picture),))

    @classmethod
    def item(cls, item_id: str) -> Query:
        """Ask for what resembles a stored item."""
        return cls((Term("item", item_id),))

    @classmethod
    def of(cls, query: Any, find_picture: Callable[[str], Path | None] | None = None) -> Query:
        """Return a query as it is, parse a string, and take anything else for a picture."""
        if isinstance(query, Query):
            return query
        if isinstance(query, str):
            from diptych.collection.query_parser import parse_query

            return parse_query(query, find_picture=find_picture)
        return cls.picture(query)

    @property
    def words(self) -> str:
        """The words asked for, without those of negative terms."""
        return " ".join(term.value for term in self.terms if term.kind == "text" and term.weight > 0)

    def __add__(self, other: Query) -> Query:
        return Query(self.terms + other.terms)

    def __sub__(self, other: Query) -> Query:
        return self + -1 * other

    def __mul__(self, weight: float) -> Query:
        return Query(tuple(replace(term, weight=weight * term.weight) for term in self.terms))

    __rmul__ = __mul__

    def __str__(self) -> str:
        parts = [f"{'-' if term.weight < 0 else '+'} {_protected(str(term))}" for term in self.terms]
        return " ".join(parts).removeprefix("+ ")


def _protected(term: str) -> str:
    return f'"{term}"' if _OPERATOR.search(term) else term
