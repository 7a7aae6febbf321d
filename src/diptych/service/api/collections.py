"""Collection routes: what is in each collection, when and where it was taken, how it is searched, and its map."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from diptych.service.api.search import request_filter
from diptych.service.context import Context, Hosted, Reading, Searching, ServiceContext, Then, Writing
from diptych.service.hosting import HostedCollection
from diptych.service.maps import has_map, read_map
from diptych.service.problems import Problem
from diptych.service.schemas.collections import (
    CollectionDocument,
    CollectionList,
    HistoryChoice,
    MapDocument,
    Timeline,
    VersionDocument,
    VersionList,
    WorldMap,
)
from diptych.service.schemas.retrievers import RetrieverSummary

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
            "hybrid_available": status.items > 0,
            "map": "ready" if has_map(collection, status.fingerprint) else "none",
        },
        extra="ignore",
    )


FilterText = Annotated[str | None, Query(max_length=2000, description="Count only items that meet it.")]


@router.get("/collections/{collection}/timeline", operation_id="getTimeline", dependencies=[Searching])
def get_timeline(context: Context, hosted: Then, filter: FilterText = None) -> Timeline:
    """Count the items that meet a filter by the month they were taken in."""
    periods = hosted.collection.timeline(request_filter(context, filter))
    return Timeline.model_validate({"periods": periods}, from_attributes=True)


@router.get("/collections/{collection}/world", operation_id="getWorld", dependencies=[Searching])
def get_world(
    context: Context,
    hosted: Then,
    filter: FilterText = None,
    south: Annotated[float, Query(ge=-90, le=90, description="Latitude where the map begins.")] = -90,
    west: Annotated[float, Query(ge=-180, le=180, description="Longitude where it begins.")] = -180,
    north: Annotated[float, Query(ge=-90, le=90, description="Latitude where the map ends.")] = 90,
    east: Annotated[float, Query(ge=-180, le=180, description="Longitude where it ends.")] = 180,
) -> WorldMap:
    """Count the items that meet a filter by where they were taken, in fields of a map of a part of the world."""
    corners = {"south": south, "west": west, "north": north, "east": east}
    cells = hosted.collection.map_cells(request_filter(context, filter), **corners)
    return WorldMap.model_validate({"cells": cells}, from_attributes=True)


@router.get("/collections/{collection}/history", operation_id="listVersions")
def list_versions(hosted: Hosted) -> VersionList:
    """List the versions of the items that can be asked for with as_of, the latest first."""
    versions = [
        VersionDocument.model_validate({**vars(one), "time": one.time}, extra="ignore")
        for one in reversed(hosted.collection.history())
    ]
    return VersionList(versions=versions, kept_days=hosted.collection.history_days)


@router.put("/collections/{collection}/history", operation_id="keepHistory", dependencies=[Writing])
def keep_history(hosted: Hosted, request: HistoryChoice) -> VersionList:
    """Choose for how many days items that were changed or removed are kept as they were; older ones go at once."""
    hosted.collection.keep_history(request.kept_days)
    return list_versions(hosted)


maps_router = APIRouter(prefix="/v1", tags=["maps"], dependencies=[Reading])

RetrieverName = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        description="Search model (retriever); by default the active one.",
    ),
]


@maps_router.get("/collections/{collection}/map", operation_id="getMap")
def get_map(hosted: Hosted, retriever: RetrieverName = None) -> MapDocument:
    """Return the map of a collection, as the last job of kind ``map`` has drawn it."""
    source = hosted.collection.retriever_named(retriever)
    kept = read_map(hosted.collection, source.fingerprint)
    if kept is None:
        raise Problem(404, "no-map", 'There is no map yet; start a job of kind "map" to make one.')
    items = hosted.collection.items()
    known = {item.id for item in items}
    points = [point for point in kept["points"] if point["id"] in known]
    newest = max((item.updated_ns for item in items), default=0)
    stale = bool(len(items) != kept["items_total"] or newest > kept["newest_ns"])
    return MapDocument.model_validate(
        {
            "retriever": retriever or source.name,
            "made": kept["made"],
            "items_in_map": len({point["id"] for point in points}),
            "items_total": len(items),
            "stale": stale,
            "note": _map_note(kept, stale),
            "points": points,
        }
    )


def _map_note(kept: dict[str, Any], stale: bool) -> str:
    shown, total = kept["items_in_map"], kept["items_total"]
    sampled = f"A sample of {shown:,} of {total:,} items, spread over the labels. " if shown < total else ""
    changed = "Items have changed since the map was made; redraw it to see them." if stale else ""
    return (sampled + changed).strip()
