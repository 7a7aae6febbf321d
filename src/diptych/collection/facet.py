"""What a collection can be narrowed down by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diptych.collection.facet_value import FacetValue


@dataclass(frozen=True)
class Facet:
    """A field of the items with its most frequent values, or with its range when it holds many different numbers.

    ``field`` is the name that filters use: ``label``, or that of a metadatum.
    """

    field: str
    kind: Literal["values", "range"]
    values: tuple[FacetValue, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
