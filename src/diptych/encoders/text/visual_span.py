"""A part of a query that names something visible."""

from __future__ import annotations

from typing import NamedTuple


class VisualSpan(NamedTuple):
    """Where in a query a concept is named: ``query[start:end]``.

    >>> from diptych.encoders import Visualness
    >>> Visualness(concepts=["dog"]).of("two dogs").spans
    (VisualSpan(start=4, end=8, concept='dog'),)
    """

    start: int
    """Where it begins, in characters."""
    end: int
    """Where it ends."""
    concept: str
    """The name of the concept as the vocabulary writes it."""
