"""Two retrievers compared on live traffic."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, status

from diptych.collection import Collection
from diptych.service.api.click_log_access import Logged, log_problems
from diptych.service.api.retrievers import usable_retriever
from diptych.service.clicks.interleaving import Interleaving
from diptych.service.clicks.interleaving_error import InterleavingError
from diptych.service.clicks.interleaving_report import InterleavingReport
from diptych.service.context import Hosted
from diptych.service.problem import Problem
from diptych.service.problem_response import problem_response
from diptych.service.schemas.interleaving_document import InterleavingDocument, InterleavingState
from diptych.service.schemas.interleaving_list import InterleavingList
from diptych.service.schemas.interleaving_request import InterleavingRequest
from diptych.service.security.guards import Reading, Writing

router = APIRouter(prefix="/v1", tags=["interleaving"], dependencies=[Reading])

_INTERLEAVING = "/collections/{collection}/interleaving"
_CONFLICT: dict[int | str, dict[str, Any]] = {409: problem_response("Two retrievers cannot be interleaved now.")}


@router.post(
    _INTERLEAVING,
    operation_id="startInterleaving",
    status_code=status.HTTP_201_CREATED,
    dependencies=[Writing],
    responses=_CONFLICT,
)
def start_interleaving(hosted: Hosted, log: Logged, request: InterleavingRequest) -> InterleavingDocument:
    """Let two retrievers answer searches for pictures together from now on, and count whose answers are clicked."""
    a, b = (usable_retriever(hosted.collection, name) for name in (request.a, request.b))
    try:
        with log_problems():
            log.start_interleaving(a=(a.name, a.fingerprint), b=(b.name, b.fingerprint))
            return _documents(hosted.collection, log.interleavings())[0]
    except InterleavingError as error:
        raise Problem(409, "interleaving-running", f"Another one runs: {error}.") from None


@router.get(_INTERLEAVING, operation_id="listInterleavings")
def list_interleavings(hosted: Hosted, log: Logged) -> InterleavingList:
    """Count, for each two retrievers that were interleaved, the searches and whose answers were clicked."""
    with log_problems():
        return InterleavingList(interleavings=_documents(hosted.collection, log.interleavings()))


@router.delete(_INTERLEAVING, operation_id="stopInterleaving", dependencies=[Writing])
def stop_interleaving(hosted: Hosted, log: Logged) -> InterleavingDocument:
    """Let the active retriever answer alone again; what was counted stays."""
    try:
        with log_problems():
            number = log.stop_interleaving().number
            reports = [report for report in log.interleavings() if report.interleaving.number == number]
    except InterleavingError:
        raise Problem(404, "no-interleaving", "No two retrievers are interleaved now; there is none to stop.") from None
    return _documents(hosted.collection, reports)[0]


def _documents(collection: Collection, reports: list[InterleavingReport]) -> list[InterleavingDocument]:
    stored = {(one.name, one.fingerprint) for one in collection.retrievers() if one.ready}
    return [_document(report, _state(report.interleaving, stored)) for report in reports]


def _state(one: Interleaving, stored: set[tuple[str, str]]) -> InterleavingState:
    if one.stopped is not None:
        return "stopped"
    return "running" if {(one.a, one.a_fingerprint), (one.b, one.b_fingerprint)} <= stored else "waiting"


def _document(report: InterleavingReport, state: InterleavingState) -> InterleavingDocument:
    one = report.interleaving
    return InterleavingDocument(
        a=one.a,
        a_fingerprint=one.a_fingerprint,
        b=one.b,
        b_fingerprint=one.b_fingerprint,
        state=state,
        started=_moment(one.started),
        stopped=None if one.stopped is None else _moment(one.stopped),
        searches=report.searches,
        clicks_a=report.clicks_a,
        clicks_b=report.clicks_b,
        wins_a=report.wins_a,
        wins_b=report.wins_b,
        ties=report.ties,
        p_value=report.p_value,
    )


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
