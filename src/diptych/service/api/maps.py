"""Maps of collections."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from diptych.collection import Item
from diptych.service.context import Hosted
from diptych.service.maps import read_map
from diptych.service.problem import Problem
from diptych.service.schemas.map_document import MapDocument
from diptych.service.security.guards import Reading

router = APIRouter(prefix="/v1", tags=["maps"], dependencies=[Reading])

RetrieverName = Annotated[
    str | None, Query(min_length=1, max_length=200, description="Whose points; by default the active retriever's.")
]


@router.get("/collections/{collection}/map", operation_id="getMap")
def get_map(hosted: Hosted, retriever: RetrieverName = None) -> MapDocument:
    """Return the map of a collection, as the last job of kind ``map`` has drawn it."""
    source = hosted.collection.retriever_named(retriever)
    kept = read_map(hosted.collection, source.fingerprint)
    if kept is None:
        raise Problem(404, "no-map", 'There is no map yet; start a job of kind "map" to make one.')
    items = hosted.collection.items()
    known = {item.id for item in items}
    points = [point for point in kept["points"] if point["id"] in known]
    stale = _is_stale(kept, items)
    return MapDocument.model_validate(
        {
            "retriever": retriever or source.name,
            "made": kept["made"],
            "items_in_map": len({point["id"] for point in points}),
            "items_total": len(items),
            "stale": stale,
            "note": _note(kept, stale),
            "points": points,
        }
    )


def _is_stale(kept: dict[str, Any], items: list[Item]) -> bool:
    newest = max((item.updated_ns for item in items), default=0)
    return bool(len(items) != kept["items_total"] or newest > kept["newest_ns"])


def _note(kept: dict[str, Any], stale: bool) -> str:
    shown, total = kept["items_in_map"], kept["items_total"]
    sampled = f"A sample of {shown:,} of {total:,} items, spread over the labels. " if shown < total else ""
    changed = "Items have changed since the map was made; make it anew to see them." if stale else ""
    return (sampled + changed).strip()
