"""What people ask for, and where the answers fail them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from diptych.service.api.click_log_access import log_problems
from diptych.service.context import Context, Hosted
from diptych.service.schemas.query_log_document import QueryLogDocument
from diptych.service.security.guards import Clicking, Reading

router = APIRouter(prefix="/v1", tags=["query log"], dependencies=[Reading])


@router.get("/collections/{collection}/query-log", operation_id="getQueryLog", dependencies=[Clicking])
def query_log(
    context: Context,
    hosted: Hosted,
    days: Annotated[int, Query(ge=1, le=3650, description="How many days to look back, today included.")] = 30,
) -> QueryLogDocument:
    """Report on searches and clicks: how many by day, which queries are frequent, fail or are visual, and places."""
    log = context.click_logs.get(hosted.name)
    if log is None:
        return QueryLogDocument(
            log=False, searches=0, clicks=0, visual=None, per_day=[], top=[], failing=[], positions=[]
        )
    with log_problems():
        report = log.report(days)
    return QueryLogDocument.model_validate({"log": True, **report._asdict()})
