"""What people clicked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Annotated

from fastapi import APIRouter, Query, status
from fastapi.responses import StreamingResponse

from diptych.service.api.click_log_access import Logged, log_problems
from diptych.service.clicks import ClickLog
from diptych.service.clicks.export import ExportFormat, ExportKind
from diptych.service.context import Context, Hosted
from diptych.service.problem import Problem
from diptych.service.schemas.click_receipt import ClickReceipt
from diptych.service.schemas.click_request import ClickRequest
from diptych.service.security.guards import Clicking, Reading, Writing

router = APIRouter(prefix="/v1", tags=["clicks"], dependencies=[Reading])

_CLICKS = "/collections/{collection}/clicks"
_CHUNK = 2**16
_TYPES: dict[ExportFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
_TABLE = {
    "description": "A table, in the format that was asked for.",
    "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in _TYPES.values()},
}


@router.post(_CLICKS, status_code=status.HTTP_201_CREATED, operation_id="recordClick", dependencies=[Clicking])
def record_click(context: Context, hosted: Hosted, log: Logged, click: ClickRequest) -> ClickReceipt:
    """Remember that a person used an answer; acknowledged when it is on the disk."""
    with log_problems():
        number = log.record_click(
            search_id=click.search_id,
            item=click.item,
            position=click.position,
            kind=click.kind,
            caption_id=click.caption_id,
        )
    context.metrics.count_click(hosted.name)
    return ClickReceipt(id=number)


@router.get(
    _CLICKS,
    operation_id="exportClicks",
    dependencies=[Clicking],
    response_class=StreamingResponse,
    responses={status.HTTP_200_OK: _TABLE},
)
def export_clicks(
    log: Logged,
    format: Annotated[ExportFormat, Query(description="The format of the table.")] = "csv",
    events: Annotated[bool, Query(description="Every click, with its position, instead of counts.")] = False,
    impressions: Annotated[bool, Query(description="Everything shown, clicked or not, counted by position.")] = False,
) -> StreamingResponse:
    """Return the clicks as triads of query, item and number of clicks, or one by one, or with all that was shown."""
    if events and impressions:
        raise Problem(422, "invalid-request", "Ask for events or for impressions, not for both at once.")
    what: ExportKind = "events" if events else "impressions" if impressions else "triads"
    table = _written(log, what, format)
    length = table.tell()
    headers = {
        "Content-Length": str(length),
        "Content-Disposition": f'attachment; filename="{what}.{format}"',
        "Cache-Control": "no-store",
    }
    return StreamingResponse(_chunks(table), media_type=_TYPES[format], headers=headers)


@router.delete(_CLICKS, status_code=status.HTTP_204_NO_CONTENT, operation_id="forgetClicks", dependencies=[Writing])
def forget_clicks(log: Logged) -> None:
    """Forget everything that was asked, shown, clicked and voted."""
    with log_problems():
        log.forget()


def _written(log: ClickLog, what: ExportKind, format: ExportFormat) -> IO[bytes]:
    """Write the whole table before its first byte leaves.

    A slow client then keeps no state of the log alive, and what goes wrong can still be said.
    """
    try:
        with ExitStack() as on_failure:
            # Beside the log, since the folder for temporary files may lie in memory.
            table = on_failure.enter_context(tempfile.TemporaryFile(dir=log.path.parent))
            with log_problems():
                log.export(table, what, format)
            on_failure.pop_all()
            return table
    except OSError as error:
        raise Problem(
            507, "no-room", "There is no room to write the table; free some on the service's disk."
        ) from error


def _chunks(table: IO[bytes]) -> Iterator[bytes]:
    with table:
        table.seek(0)
        while chunk := table.read(_CHUNK):
            yield chunk
