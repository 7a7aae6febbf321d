"""Collection routes: what is in each collection, how it is searched, and its map."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from diptych.service.context import Context, Hosted, Reading, ServiceContext
from diptych.service.hosting import HostedCollection
from diptych.service.maps import has_map, read_map
from diptych.service.problems import Problem
from diptych.service.schemas.collections import CollectionDocument, CollectionList, MapDocument
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
            "read_only": context.settings.read_only,
            "hybrid_available": status.captions > 0,
            "map": "ready" if has_map(collection, status.fingerprint) else "none",
        },
        extra="ignore",
    )


maps_router = APIRouter(prefix="/v1", tags=["maps"], dependencies=[Reading])

RetrieverName = Annotated[
    str | None, Query(min_length=1, max_length=200, description="Whose points; by default the active retriever's.")
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
    changed = "Items have changed since the map was made; make it anew to see them." if stale else ""
    return (sampled + changed).strip()
