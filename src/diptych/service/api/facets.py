"""What a search can be narrowed down by."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from diptych.service.api.asked_filter import asked_filter
from diptych.service.context import Context, Hosted
from diptych.service.schemas.facet_document import FacetDocument
from diptych.service.schemas.facet_list import FacetList
from diptych.service.schemas.facet_value_document import FacetValueDocument
from diptych.service.security.guards import Reading, Searching

router = APIRouter(prefix="/v1", tags=["search"], dependencies=[Reading])


@router.get("/collections/{collection}/facets", operation_id="listFacets", dependencies=[Searching])
def list_facets(
    context: Context,
    hosted: Hosted,
    filter: Annotated[str | None, Query(max_length=2000, description="Count only items that meet it.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="How many values of each field.")] = 10,
) -> FacetList:
    """Count the labels and metadata of the items that meet a filter."""
    found = hosted.collection.facets(asked_filter(context, filter), limit=limit)
    return FacetList(
        facets=[
            FacetDocument(
                field=facet.field,
                kind=facet.kind,
                values=[
                    FacetValueDocument(value=value.value, count=value.count, filter=value.filter)
                    for value in facet.values
                ],
                minimum=facet.minimum,
                maximum=facet.maximum,
            )
            for facet in found
        ]
    )
