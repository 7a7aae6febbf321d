"""A search in an address."""

from __future__ import annotations

from pydantic import Field

from diptych.service.schemas.search_options import SearchOptions


class SearchParameters(SearchOptions):
    """The parameters of a search by address."""

    q: str = Field(min_length=1, max_length=2000, examples=["a dog on the beach - snow"])
    """Words; with + and - between terms, weights as in 2:dog, and item:ID for a stored item."""
