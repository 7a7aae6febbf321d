"""The collections of the service."""

from __future__ import annotations

from fastapi import APIRouter

from diptych.service.context import Context, Hosted, ServiceContext
from diptych.service.hosted_collection import HostedCollection
from diptych.service.maps.map_file import has_map
from diptych.service.schemas.collection_document import CollectionDocument
from diptych.service.schemas.collection_list import CollectionList
from diptych.service.schemas.retriever_summary import RetrieverSummary
from diptych.service.security.guards import Reading

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
    return CollectionDocument(
        name=hosted.name,
        items=status.items,
        pictures=status.pictures,
        captions=status.captions,
        retriever=RetrieverSummary(name=status.retriever, fingerprint=status.fingerprint),
        stale=status.stale,
        pending=status.pending,
        unsearchable=status.unsearchable,
        store_bytes=status.store_bytes,
        index_bytes=status.index_bytes,
        cutoff=collection.retriever.cutoff,
        log_clicks=context.settings.log_clicks,
        read_only=context.settings.read_only,
        hybrid_available=status.captions > 0,
        map="ready" if has_map(collection, status.fingerprint) else "none",
        updated=status.updated,
    )
