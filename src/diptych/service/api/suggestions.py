"""What one may have in mind."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from diptych.service.context import Hosted
from diptych.service.schemas.suggestion_document import SuggestionDocument
from diptych.service.schemas.suggestion_list import SuggestionList
from diptych.service.security.guards import Reading

router = APIRouter(prefix="/v1", tags=["search"], dependencies=[Reading])


@router.get("/collections/{collection}/suggestions", operation_id="listSuggestions")
def list_suggestions(
    hosted: Hosted,
    prefix: Annotated[str, Query(max_length=200, description="What has been typed so far.")] = "",
    limit: Annotated[int, Query(ge=1, le=50, description="How many.")] = 8,
) -> SuggestionList:
    """Suggest ways to go on with what has been typed, from labels and captions."""
    found = hosted.collection.suggestions(prefix, limit)
    return SuggestionList(
        suggestions=[SuggestionDocument(text=one.text, kind=one.kind, count=one.count) for one in found]
    )
