"""Saved searches and albums over REST."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from diptych.service.schemas import Document, RequestDocument, with_examples
from diptych.service.schemas.search import SearchMode, Target

Name = Annotated[str, StringConstraints(min_length=1, max_length=80)]
ItemIds = Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=400)]], Field(max_length=10_000)]


class AlbumDocument(Document):
    """Items under a title, in an order of their own."""

    title: str
    items: list[str]
    """Ids of those that are in the collection, in the order of the album."""


class AlbumList(Document):
    """The albums of a collection, in the order in which they were made."""

    albums: list[AlbumDocument]


class AlbumItems(RequestDocument):
    """The items that an album is to have."""

    model_config = with_examples({"items": ["5f2b", "0c11"]})

    items: ItemIds
    """Ids of items, in the order that the album is to have."""


class AlbumChange(RequestDocument):
    """What is to be changed of an album: its title, and what comes in and goes out."""

    model_config = with_examples({"add": ["5f2b"]}, {"title": "Summer 2024"})

    title: Name | None = None
    """Its new title."""
    add: ItemIds | None = None
    """Ids of items to put at its end; those that are in it stay where they are."""
    remove: ItemIds | None = None
    """Ids of items to take out."""


class SavedSearchRequest(RequestDocument):
    """What a saved search asks: words, a filter, or both."""

    model_config = with_examples({"query": "a dog - sofa", "filter": "year>=2020"})

    query: str = Field(default="", max_length=2000)
    """Words, as in a search; empty for a filter alone."""
    filter: str | None = Field(default=None, max_length=2000)
    """Which items to consider."""
    target: Target = "images"
    """What to find: pictures or texts."""
    mode: SearchMode = "auto"
    """Whether to go by meaning, by words, or by both; auto decides by the words."""
    retriever: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """The name of a search model of the collection; by default the one that is active then."""
    min_probability: float | None = Field(default=None, ge=0, le=1)
    """Leave out answers that are less likely relevant."""


class SavedSearchDocument(SavedSearchRequest):
    """A search under a name, asked anew each time."""

    name: str


class SavedSearchList(Document):
    """The saved searches of a collection, in the order in which they were saved."""

    searches: list[SavedSearchDocument]


class NewName(RequestDocument):
    """Another name for a saved search."""

    model_config = with_examples({"name": "Dogs outside"})

    name: Name
