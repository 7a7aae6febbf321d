"""Routes of collections (what is in them, when and where, maps) and of their retrievers, with the way back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Response, status

from diptych.collection import Collection, CollectionError, StoredRetriever
from diptych.service.api.jobs import start_job
from diptych.service.api.search import request_filter
from diptych.service.context import Clicking, Context, Hosted, Reading, Searching, ServiceContext, Writing
from diptych.service.hosting import HostedCollection
from diptych.service.jobs.store import READY_MADE
from diptych.service.maps import has_map, read_map
from diptych.service.problems import Problem, problem_response
from diptych.service.schemas.collections import (
    CollectionDocument,
    CollectionList,
    MapDocument,
    Timeline,
    WorldMap,
)
from diptych.service.schemas.jobs import JobDocument, JobRequest, RetrieverJob
from diptych.service.schemas.retrievers import (
    Explains,
    LearningDocument,
    LearningStep,
    RetrieverDocument,
    RetrieverList,
    RetrieverRequest,
    RetrieverSummary,
)

if TYPE_CHECKING:
    from diptych.collection.learning import LearningRecord

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
def get_timeline(context: Context, hosted: Hosted, filter: FilterText = None) -> Timeline:
    """Count the items that meet a filter by the month they were taken in."""
    periods = hosted.collection.timeline(request_filter(context, filter))
    return Timeline.model_validate({"periods": periods}, from_attributes=True)


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
    cells = hosted.collection.map_cells(request_filter(context, filter), **corners)
    return WorldMap.model_validate({"cells": cells}, from_attributes=True)


maps_router = APIRouter(prefix="/v1", tags=["maps"], dependencies=[Reading])

MapRetriever = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        description="Search model (retriever); by default the active one.",
    ),
]


@maps_router.get("/collections/{collection}/map", operation_id="getMap")
def get_map(hosted: Hosted, retriever: MapRetriever = None) -> MapDocument:
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


retrievers_router = APIRouter(prefix="/v1", tags=["retrievers"], dependencies=[Reading])
_RETRIEVERS = "/collections/{collection}/retrievers"
_NOT_USABLE: dict[int | str, dict[str, Any]] = {409: problem_response("The search model is not in a state for this.")}
RetrieverName = Annotated[str, Path(description="Name of the search model (retriever).", max_length=200)]


@retrievers_router.get(_RETRIEVERS, operation_id="listRetrievers")
def list_retrievers(hosted: Hosted) -> RetrieverList:
    """List the search models (retrievers) that a collection can be searched with."""
    stored = hosted.collection.retrievers()
    taken = {one.name for one in stored}
    return RetrieverList(
        retrievers=[
            RetrieverDocument(**asdict(one), explains=_explains(hosted.collection, one.name)) for one in stored
        ],
        available=[name for name in READY_MADE if name not in taken],
    )


@retrievers_router.post(
    _RETRIEVERS, operation_id="addRetriever", status_code=status.HTTP_202_ACCEPTED, dependencies=[Writing]
)
def add_retriever(context: Context, hosted: Hosted, request: RetrieverRequest, response: Response) -> JobDocument:
    """Start the job that adds a search model beside the active one."""
    return start_job(context, hosted, JobRequest(RetrieverJob(kind="retriever", parameters=request)), response)


@retrievers_router.post(
    _RETRIEVERS + "/{name}/activate", operation_id="activateRetriever", dependencies=[Writing], responses=_NOT_USABLE
)
def activate_retriever(context: Context, hosted: Hosted, name: RetrieverName) -> CollectionDocument:
    """Let searches use a search model from now on; the one before stays stored."""
    usable_retriever(hosted.collection, name)
    hosted.collection.activate_retriever(name)
    return collection_document(context, hosted)


@retrievers_router.delete(
    _RETRIEVERS + "/{name}",
    operation_id="removeRetriever",
    status_code=status.HTTP_204_NO_CONTENT,
    dependencies=[Writing],
    responses=_NOT_USABLE,
)
def remove_retriever(hosted: Hosted, name: RetrieverName) -> None:
    """Delete a search model and what it stored of each item."""
    if _stored(hosted.collection, name).active:
        raise Problem(409, "retriever-active", f"{name!r} is the search model in use; activate another one first.")
    hosted.collection.remove_retriever(name)


def usable_retriever(collection: Collection, name: str) -> StoredRetriever:
    """Return a stored retriever that searches can use, by its name."""
    found = _stored(collection, name)
    if not found.ready:
        detail = f"The points of {name!r} are unfinished; start its job again, then try again."
        raise Problem(409, "retriever-unfinished", detail)
    return found


def _stored(collection: Collection, name: str) -> StoredRetriever:
    known = {one.name: one for one in collection.retrievers()}
    if name not in known:
        raise Problem(404, "no-such-retriever", f"There is no search model {name!r}; there are {', '.join(known)}.")
    return known[name]


def _explains(collection: Collection, name: str) -> Explains:
    # Imported where it is asked for, as below: a service starts without the methods.
    from diptych.retriever.explaining import explanation_kind

    try:
        return explanation_kind(getattr(collection.retriever_named(name), "model_", None))
    except CollectionError:
        # Removed since it was listed, or its encoders are not on this machine.
        return "none"


learning_router = APIRouter(prefix="/v1", tags=["learning"], dependencies=[Reading])
_LEARNING = "/collections/{collection}/learning"
_NOTHING_TO_ROLL_BACK: dict[int | str, dict[str, Any]] = {409: problem_response("There is nothing to go back to.")}


@learning_router.get(_LEARNING, operation_id="getLearning", dependencies=[Clicking])
def get_learning(hosted: Hosted) -> LearningDocument:
    """List every change of the search model and every comparison, with measures before and after."""
    from diptych.collection.learning import rolls_back_to

    steps = [_learning_step(record) for record in reversed(hosted.collection.retriever_history())]
    return LearningDocument(steps=steps, rolls_back_to=rolls_back_to(hosted.collection))


@learning_router.post(
    _LEARNING + "/rollback", operation_id="rollBack", dependencies=[Writing], responses=_NOTHING_TO_ROLL_BACK
)
def roll_back(hosted: Hosted) -> LearningStep:
    """Let searches use the search model from before the last change again; the one that leaves stays stored."""
    from diptych.collection.learning import rollback, rolls_back_to

    if rolls_back_to(hosted.collection) is None:
        detail = "The search model in use replaced no other one, or the one before it is gone; activate one by name."
        raise Problem(409, "nothing-to-roll-back", detail)
    return _learning_step(rollback(hosted.collection))


def _learning_step(record: LearningRecord) -> LearningStep:
    changes = {
        name: [{"query": query, "before": before, "after": after} for query, before, after in told]
        for name, told in (("gained", record.gained), ("lost", record.lost))
    }
    return LearningStep.model_validate({**record.to_json(), **changes}, extra="ignore")
