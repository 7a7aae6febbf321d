"""Click-log routes: record, export and forget clicks, report on queries, and interleave retrievers."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Annotated, Any

from fastapi import APIRouter, Depends, Query, status
from fastapi.responses import StreamingResponse
from pydantic import Field, with_config

from diptych.service.api.documents import DOCUMENTED, Document, RequestDocument, with_examples
from diptych.service.api.retrievers import usable_retriever
from diptych.service.clicks import ClickLog, UnknownSearchError
from diptych.service.clicks.exports import ExportFormat, ExportKind
from diptych.service.clicks.interleavings import InterleavingReport
from diptych.service.clicks.records import ClickKind, InterleavingError
from diptych.service.clicks.reports import QueryReport
from diptych.service.context import Clicking, Context, Hosted, Reading, Visitor, Writing
from diptych.service.problems import Problem, problem_response, sentence

with_config(DOCUMENTED)(QueryReport)
with_config(DOCUMENTED)(InterleavingReport)


class InterleavingRequest(RequestDocument):
    """Two search models of the collection."""

    model_config = with_examples({"a": "default", "b": "learned"})

    a: str = Field(min_length=1, max_length=200)
    """The name of the one."""
    b: str = Field(min_length=1, max_length=200)
    """The name of the other."""


class InterleavingList(Document):
    """Each two search models that were interleaved."""

    interleavings: list[InterleavingReport]
    """The latest first; at most that one runs."""


class ClickRequest(RequestDocument):
    """What a person did with one answer of a search."""

    model_config = with_examples(
        {"search_id": "0123456789abcdef0123456789abcdef", "item": "5f2b", "position": 1, "kind": "open"}
    )

    search_id: str = Field(min_length=1, max_length=64)
    """The search that showed the answer."""
    item: str = Field(min_length=1, max_length=400)
    """The id of the answer."""
    position: int = Field(ge=1, le=2**31 - 1)
    """The rank at which it was shown, from 1."""
    kind: ClickKind = "open"
    """What was done: opened, looked at in full, or asked for more or less like it."""
    caption_id: str | None = Field(default=None, max_length=400)
    """Which text of the item it was, when texts were searched."""


class ClickReceipt(Document):
    """The click is on the disk."""

    id: int
    """Its number in the log."""


async def click_log(context: Context, hosted: Hosted) -> ClickLog:
    """Return the click log of the collection that an address names."""
    log = context.click_logs.get(hosted.name)
    if log is None:
        raise Problem(404, "click-log-off", "This service remembers no clicks; start it without --no-click-log.")
    return log


RequestClickLog = Annotated[ClickLog, Depends(click_log)]


router = APIRouter(prefix="/v1", tags=["clicks"], dependencies=[Reading])
_CLICKS = "/collections/{collection}/clicks"
_CHUNK = 2**16

_TYPES: dict[ExportFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
}

_TABLE = {
    "description": "A table, in the format that was asked for.",
    "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in _TYPES.values()},
}


@router.post(_CLICKS, status_code=status.HTTP_201_CREATED, operation_id="recordClick", dependencies=[Clicking])
def record_click(
    context: Context, hosted: Hosted, log: RequestClickLog, visitor: Visitor, click: ClickRequest
) -> ClickReceipt:
    """Remember that a person used an answer; acknowledged when it is on the disk."""
    if wait := context.log_wait(visitor, "click"):
        seconds = str(math.ceil(wait))
        detail = f"So many clicks of one visitor are not remembered; go on in {seconds} s."
        raise Problem(429, "too-many-clicks", detail, headers={"Retry-After": seconds})
    try:
        number = log.record_click(**click.model_dump(), visitor=visitor)
    except UnknownSearchError as error:
        raise Problem(404, "no-such-search", sentence(error)) from None
    context.metrics.clicks.labels(hosted.name).inc()
    return ClickReceipt(id=number)


@router.get(
    _CLICKS,
    operation_id="exportClicks",
    dependencies=[Clicking],
    response_class=StreamingResponse,
    responses={status.HTTP_200_OK: _TABLE},
)
def export_clicks(
    log: RequestClickLog,
    format: Annotated[ExportFormat, Query(description="The format of the table.")] = "csv",
    what: Annotated[
        ExportKind,
        Query(
            description="triads: clicks counted by query and item; events: every click with its position; impressions: "
            "everything shown, clicked or not, counted by position."
        ),
    ] = "triads",
) -> StreamingResponse:
    """Return the clicks counted by query and item, or one by one, or with all that was shown."""
    table = _write_table(log, what, format)
    headers = {
        "Content-Length": str(table.tell()),
        "Content-Disposition": f'attachment; filename="{what}.{format}"',
        "Cache-Control": "no-store",
    }
    return StreamingResponse(_chunks(table), media_type=_TYPES[format], headers=headers)


@router.delete(_CLICKS, status_code=status.HTTP_204_NO_CONTENT, operation_id="forgetClicks", dependencies=[Writing])
def forget_clicks(
    log: RequestClickLog,
    older_than_days: Annotated[
        int | None, Query(ge=0, le=36_500, description="Forget only searches older than that many days.")
    ] = None,
) -> None:
    """Forget what was asked, shown and clicked, and the rehearsals that quote it."""
    log.forget(None if older_than_days is None else time.time() - 86_400 * older_than_days)


def _write_table(log: ClickLog, what: ExportKind, format: ExportFormat) -> IO[bytes]:
    """Write the whole table, so that a slow client keeps no state of the log alive, and what fails can be said."""
    try:
        with ExitStack() as on_failure:
            # Beside the derived files, since the folder for temporary files may lie in memory.
            log.store.derived.mkdir(parents=True, exist_ok=True)
            table = on_failure.enter_context(tempfile.TemporaryFile(dir=log.store.derived))
            log.export(table, what, format)
            on_failure.pop_all()
            return table
    except OSError as error:
        detail = "There is no room to write the table; free some on the service's disk."
        raise Problem(507, "no-room", detail) from error


def _chunks(table: IO[bytes]) -> Iterator[bytes]:
    with table:
        table.seek(0)
        while chunk := table.read(_CHUNK):
            yield chunk


query_log_router = APIRouter(prefix="/v1", tags=["query log"], dependencies=[Reading])


@query_log_router.get("/collections/{collection}/query-log", operation_id="getQueryLog", dependencies=[Clicking])
def query_log(
    context: Context,
    hosted: Hosted,
    days: Annotated[int, Query(ge=1, le=3650, description="How many days to look back, today included.")] = 30,
) -> QueryReport:
    """Report on searches and clicks: how many by day, which queries are frequent, fail or are visual, and places."""
    log = context.click_logs.get(hosted.name)
    return QueryReport() if log is None else log.report(days)


interleaving_router = APIRouter(prefix="/v1", tags=["interleaving"], dependencies=[Reading])
_INTERLEAVING = "/collections/{collection}/interleaving"
_CONFLICT: dict[int | str, dict[str, Any]] = {409: problem_response("Two search models cannot be interleaved now.")}


@interleaving_router.post(
    _INTERLEAVING,
    operation_id="startInterleaving",
    status_code=status.HTTP_201_CREATED,
    dependencies=[Writing],
    responses=_CONFLICT,
)
def start_interleaving(hosted: Hosted, log: RequestClickLog, request: InterleavingRequest) -> InterleavingReport:
    """Let two search models (retrievers) answer searches for pictures together, and count whose answers are clicked."""
    a, b = (usable_retriever(hosted.collection, name) for name in (request.a, request.b))
    try:
        log.start_interleaving(a=(a.name, a.fingerprint), b=(b.name, b.fingerprint))
        return log.interleavings(hosted.collection.retrievers())[0]
    except InterleavingError as error:
        raise Problem(409, "interleaving-running", f"Another one runs: {error}.") from None


@interleaving_router.get(_INTERLEAVING, operation_id="listInterleavings")
def list_interleavings(hosted: Hosted, log: RequestClickLog) -> InterleavingList:
    """Count, for each two search models that were interleaved, the searches and whose answers were clicked."""
    return InterleavingList(interleavings=log.interleavings(hosted.collection.retrievers()))


@interleaving_router.delete(_INTERLEAVING, operation_id="stopInterleaving", dependencies=[Writing])
def stop_interleaving(hosted: Hosted, log: RequestClickLog) -> InterleavingReport:
    """Let the search model in use answer alone again; what was counted stays."""
    try:
        log.stop_interleaving()
    except InterleavingError:
        raise Problem(404, "no-interleaving", "No two search models are interleaved; there is none to stop.") from None
    return log.interleavings()[0]
