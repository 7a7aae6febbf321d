"""Collections over REST: their state, their items, their maps, and the saved searches and albums in them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from diptych.collection.item import LONGEST_CAPTION, LONGEST_LABEL, MOST_NAMES, MOST_TEXTS
from diptych.service.schemas import Document, Pixels, RequestDocument, with_examples
from diptych.service.schemas.retrievers import RetrieverSummary
from diptych.service.schemas.search import PictureWordDocument, SavedOptions, SearchMode

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


class SavedSearchRequest(SavedOptions, RequestDocument):
    """What a saved search asks: words, a filter, or both."""

    model_config = with_examples({"query": "a dog - sofa", "filter": "year>=2020"})

    query: str = Field(default="", max_length=2000)
    """Words, as in a search; empty for a filter alone."""
    mode: SearchMode = "auto"
    """Whether to go by meaning, by words, or by both; auto decides by the words."""


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
    """The search model that searches use when none is named."""
    stale: bool
    """Whether a change of search model is unfinished; a job of kind reencode finishes it."""
    pending: str | None
    """The search model that is to take over."""
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
    log_visitors: bool = True
    """Whether they are remembered with numbers that tell visitors apart."""
    read_only: bool
    """Whether every write is refused."""
    hybrid_available: bool
    """Whether there is anything to look for words in: captions, file names, labels, metadata, text in pictures."""
    map: Literal["ready", "none"]
    """Whether a map of the collection has been made."""
    updated: str | None
    """When an item was last added or changed, ISO 8601; null while there is none."""
    texts_read: int = 0
    """Pictures whose text has been read; a job of kind read_text reads the others."""
    with_regions: int = 0
    """Pictures whose parts are searched too; a job of kind regions looks at the others."""


class CollectionList(Document):
    """The collections of the service."""

    collections: list[CollectionDocument]


class PictureTextDocument(Document):
    """The text in a picture."""

    text: str
    """Line by line; empty where there is none."""
    words: list[PictureWordDocument]


class ItemDocument(Document):
    """A stored picture or text."""

    id: str
    """Its name in addresses."""
    name: str | None
    """The name of the file, without its folder."""
    path: str | None
    """The file, from the root of the collection; null without one and for a file elsewhere."""
    seconds: float | None
    """Where in a video the picture is, from its beginning; null for what is no video."""
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
    """What else people gave it."""
    facts: dict[str, Any]
    """What its file says of itself: date, camera, place; where metadata have the same name, they hold."""
    added: str
    """When it was added, ISO 8601."""
    updated: str
    """When it was last changed, ISO 8601."""
    content_hash: str | None
    """The SHA-256 of the picture file."""
    picture_text: PictureTextDocument | None = None
    """The text in the picture, for one item; null in lists, and where it has not been read."""


class ItemList(Document):
    """A page of items."""

    items: list[ItemDocument]
    total: int
    """How many all pages have."""
    next: str | None
    """The cursor of the next page; null when there is none."""


Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_CAPTION, pattern=r"\S")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_LABEL, pattern=r"\S")]


class ItemChange(RequestDocument):
    """Captions, labels and metadata of an item; what is absent or null stays, what is empty is erased."""

    model_config = with_examples({"captions": ["a red boat"], "labels": ["boat"]})

    captions: list[Text] | None = Field(default=None, max_length=MOST_TEXTS)
    """What is said of the picture, or the text itself."""
    labels: list[Label] | None = Field(default=None, max_length=MOST_TEXTS)
    """What it shows."""
    metadata: dict[str, Any] | None = Field(default=None, max_length=MOST_NAMES)
    """What else is known of it; JSON values, 16 levels deep and 100,000 letters long at most."""


class NewItem(ItemChange):
    """What is known of a picture that is sent along, or a text, which needs a caption."""

    model_config = with_examples({"captions": ["a red boat"], "metadata": {"year": 2010}})

    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._~-]*$", max_length=200)
    """Its name in addresses; without one it is made up."""


class PeriodDocument(Document):
    """A month, or a year where no more is known."""

    period: str = Field(examples=["2019-07"])
    count: int
    """How many items were taken in it."""
    filter: str
    """What to send as filter to find those."""


class Timeline(Document):
    """When items were taken."""

    periods: list[PeriodDocument]
    """The earliest first; those without items are left out."""


class MapCellDocument(Document):
    """A field of a map of the world that has items in it."""

    latitude: float
    """Of the middle of its items, as longitude."""
    longitude: float
    count: int
    place: str | None
    """The name of a place in it, where one is known."""
    filter: str
    """What to send as filter to find its items."""


class WorldMap(Document):
    """Where items were taken."""

    cells: list[MapCellDocument]
    """The fullest first."""


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
