"""Collections over REST: their state, their items, and their maps."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from diptych.service.schemas import Document, Pixels, RequestDocument, with_examples
from diptych.service.schemas.retrievers import RetrieverSummary


class CollectionDocument(Document):
    """A collection: what is in it, and how it is searched."""

    name: str
    """The name that addresses call it by."""
    items: int
    """Pictures and texts."""
    pictures: int
    """Items with a picture."""
    captions: int
    """Texts that can be found."""
    retriever: RetrieverSummary
    """The retriever that searches use when none is named."""
    stale: bool
    """Whether a change of retriever is unfinished; a job of kind reencode finishes it."""
    pending: str | None
    """The retriever that is to take over."""
    unsearchable: int
    """Pictures without a point, because they could not be read."""
    store_bytes: int
    """What the store takes on the disk."""
    index_bytes: int
    """What the search indexes take on the disk."""
    cutoff: float
    """The probability of relevance from which an answer is a good match."""
    log_clicks: bool
    """Whether searches and clicks are remembered."""
    read_only: bool
    """Whether every write is refused."""
    hybrid_available: bool
    """Whether there are captions to compare words with."""
    map: Literal["ready", "none"]
    """Whether a map of the collection has been made."""
    updated: str | None
    """When an item was last added or changed, ISO 8601; null while there is none."""


class CollectionList(Document):
    """The collections of the service."""

    collections: list[CollectionDocument]


class ItemDocument(Document):
    """A stored picture or text."""

    id: str
    """Its name in addresses."""
    name: str | None
    """The name of the file, without its folder."""
    path: str | None
    """The file, from the root of the collection; null without one and for a file elsewhere."""
    picture: bool
    width: Pixels
    height: Pixels
    size: int
    """Of the file, in bytes; 0 without one."""
    labels: list[str]
    """What it shows."""
    captions: list[str]
    """What is said of it, or the text itself."""
    metadata: dict[str, Any]
    """What else is known of it."""
    added: str
    """When it was added, ISO 8601."""
    updated: str
    """When it was last changed, ISO 8601."""
    content_hash: str | None
    """The SHA-256 of the picture file."""


class ItemList(Document):
    """Items in the order of their addition."""

    items: list[ItemDocument]
    total: int
    """How many meet the filter."""
    next_offset: int | None
    """Where the next page begins; null when there is none."""


Text = Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"\S")]


class ItemChange(RequestDocument):
    """Captions, labels and metadata of an item; what is absent or null stays, what is empty is erased."""

    model_config = with_examples({"captions": ["a red boat"], "labels": ["boat"]})

    captions: list[Text] | None = Field(default=None, max_length=1000)
    """What is said of the picture, or the text itself."""
    labels: list[Label] | None = Field(default=None, max_length=1000)
    """What it shows."""
    metadata: dict[str, Any] | None = Field(default=None, max_length=1000)
    """What else is known of it; JSON values."""


class NewItem(ItemChange):
    """What is known of a picture that is sent along, or a text, which needs a caption."""

    model_config = with_examples({"captions": ["a red boat"], "metadata": {"year": 2010}})

    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._~-]*$", max_length=200)
    """Its name in addresses; without one it is made up."""


class MapPoint(Document):
    """A picture or a text in the plane."""

    x: float
    """From 0 to 1, as y."""
    y: float
    kind: Literal["image", "text"]
    """Whether it is a picture or a caption."""
    id: str
    caption_id: str | None = None
    label: str | None = None
    """The first label of the item."""
    text: str | None = None
    """The caption, cut where it is long."""


class MapDocument(Document):
    """Pictures and captions in the plane; what lies near each other in the common space lies near each other here."""

    retriever: str
    made: str
    """When the map was made, ISO 8601 in UTC."""
    items_in_map: int
    """How many items it shows."""
    items_total: int
    """How many items the collection has now."""
    stale: bool
    """Whether items were added, changed or removed since."""
    note: str
    """What the map leaves out, in words."""
    points: list[MapPoint]
    """Pictures first, then captions."""
