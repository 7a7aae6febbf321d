"""Routes of collections: what is in them, when and where, and their maps."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from diptych.collection.store.facets import MapCell, Period
from diptych.service.api.documents import Document, RetrieverChoice, RetrieverSummary
from diptych.service.api.search import FilterText, request_filter
from diptych.service.context import Context, Hosted, Reading, Searching, ServiceContext
from diptych.service.hosting import HostedCollection
from diptych.service.maps import has_map, read_map
from diptych.service.problems import Problem


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
    """In the order in which the service was given them."""


class Timeline(Document):
    """When items were taken."""

    periods: tuple[Period, ...]
    """The earliest first; those without items are left out."""


class WorldMap(Document):
    """Where items were taken."""

    cells: tuple[MapCell, ...]
    """The fullest first."""


class MapPoint(Document):
    """A picture or a text in the plane."""

    x: float
    """From 0 to 1, as y."""
    y: float
    """From 0 to 1, as x."""
    kind: Literal["image", "text"]
    """Whether it is a picture or a caption."""
    id: str
    """The item that it stands for."""
    caption_id: str | None = None
    """The caption that it stands for; null for a picture."""
    label: str | None = None
    """The first label of the item."""
    text: str | None = None
    """The caption, cut where it is long."""


class MapDocument(Document):
    """Pictures and captions in the plane; what lies near each other in the common space lies near each other here."""

    retriever: str
    """The search model whose points are shown."""
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


router = APIRouter(prefix="/v1", tags=["collections"], dependencies=[Reading])


@router.get("/collections", operation_id="listCollections")
def list_collections(context: Context) -> CollectionList:
    """List the collections that can be searched."""
    return CollectionList(collections=[collection_document(context, hosted) for hosted in context.hosted.values()])


@router.get("/collections/{collection}", operation_id="getCollection")
def get_collection(context: Context, hosted: Hosted) -> CollectionDocument:
    """Say what is in a collection and how it is searched."""
    return collection_document(context, hosted)


def collection_document(context: ServiceContext, hosted: HostedCollection) -> CollectionDocument:
    """Return a collection as clients see it; where it lies on the disk is not their business."""
    collection = hosted.collection
    status = collection.status()
    return CollectionDocument.model_validate(
        {
            **vars(status),
            "name": hosted.name,
            "retriever": RetrieverSummary(name=status.retriever, fingerprint=status.fingerprint),
            "cutoff": collection.retriever.cutoff,
            "log_clicks": context.settings.log_clicks,
            "log_visitors": context.settings.log_clicks and context.settings.log_visitors,
            "read_only": context.settings.read_only,
            "map": "ready" if has_map(collection, status.fingerprint) else "none",
        },
        extra="ignore",
    )


@router.get("/collections/{collection}/timeline", operation_id="getTimeline", dependencies=[Searching])
def get_timeline(context: Context, hosted: Hosted, filter: FilterText = None) -> Timeline:
    """Count the items that meet a filter by the month they were taken in."""
    return Timeline(periods=hosted.collection.timeline(request_filter(context, filter)))


@router.get("/collections/{collection}/world", operation_id="getWorld", dependencies=[Searching])
def get_world(
    context: Context,
    hosted: Hosted,
    filter: FilterText = None,
    south: Annotated[float, Query(ge=-90, le=90, description="Latitude where the map begins.")] = -90,
    west: Annotated[float, Query(ge=-180, le=180, description="Longitude where it begins.")] = -180,
    north: Annotated[float, Query(ge=-90, le=90, description="Latitude where the map ends.")] = 90,
    east: Annotated[float, Query(ge=-180, le=180, description="Longitude where it ends.")] = 180,
) -> WorldMap:
    """Count the items that meet a filter by where they were taken, in fields of a map of a part of the world."""
    corners = {"south": south, "west": west, "north": north, "east": east}
    return WorldMap(cells=hosted.collection.map_cells(request_filter(context, filter), **corners))


maps_router = APIRouter(prefix="/v1", tags=["maps"], dependencies=[Reading])


@maps_router.get("/collections/{collection}/map", operation_id="getMap")
def get_map(hosted: Hosted, retriever: Annotated[RetrieverChoice, Query()] = None) -> MapDocument:
    """Return the map of a collection, as the last job of kind ``map`` has drawn it."""
    source = hosted.collection.retriever_named(retriever)
    kept = read_map(hosted.collection, source.fingerprint)
    if kept is None:
        raise Problem(404, "no-map", 'There is no map yet; start a job of kind "map" to make one.')
    items = hosted.collection.items()
    known = {item.id for item in items}
    points = [point for point in kept["points"] if point["id"] in known]
    newest = max((item.updated_ns for item in items), default=0)
    is_stale = len(items) != kept["items_total"] or newest > kept["newest_ns"]
    shown, total = kept["items_in_map"], kept["items_total"]
    notes = [f"A sample of {shown:,} of {total:,} items."] if shown < total else []
    notes += ["Items have changed since the map was made; redraw it to see them."] if is_stale else []
    return MapDocument(
        retriever=retriever or source.name,
        made=kept["made"],
        items_in_map=len({point["id"] for point in points}),
        items_total=len(items),
        stale=is_stale,
        note=" ".join(notes),
        points=points,
    )
