"""How to search, apart from what for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.service.schemas.document import Document

Target = Literal["images", "texts"]


class SearchOptions(Document):
    """What every way to search can be told."""

    target: Target = "images"
    """What to find: pictures or texts."""
    limit: int = Field(default=30, ge=1, le=200)
    """How many answers."""
    offset: int = Field(default=0, ge=0, le=10_000)
    """How many answers to leave out before them."""
    filter: str | None = Field(default=None, max_length=2000, examples=["label:dog and year>=2010"])
    """Which items to consider."""
    hybrid: float | None = Field(default=None, ge=0, le=1)
    """Also look for the words in captions; the weight of the words."""
    exact: bool | None = None
    """Compare everything (true), use the index (false), or decide by size."""
    min_probability: float | None = Field(default=None, ge=0, le=1)
    """Leave out answers that are less likely relevant."""
    retriever: str | None = Field(default=None, min_length=1, max_length=200)
    """The name of a retriever of the collection; by default the active one."""
    log: bool = True
    """Whether to remember the search, where searches are remembered at all."""
    search_id: str | None = Field(default=None, min_length=1, max_length=100)
    """The search that this one goes on with, for a further page."""
    draw: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    """What an earlier answer to the same search was drawn with, to see it again or go on with it."""
