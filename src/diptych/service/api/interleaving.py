"""Routes that compare two retrievers: interleaving on live traffic, and votes on answers side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, status

from diptych.collection import Collection
from diptych.service.api.clicks import RequestClickLog, click_log_problems
from diptych.service.api.retrievers import usable_retriever
from diptych.service.clicks.errors import InterleavingError
from diptych.service.clicks.interleaving import InterleavingReport
from diptych.service.clicks.report import iso_time
from diptych.service.context import Clicking, Hosted, Reading, Writing
from diptych.service.problems import Problem, problem_response
from diptych.service.schemas.clicks import (
    InterleavingDocument,
    InterleavingList,
    InterleavingRequest,
    VoteList,
    VoteReceipt,
    VoteRequest,
)

router = APIRouter(prefix="/v1", tags=["interleaving"], dependencies=[Reading])
_INTERLEAVING = "/collections/{collection}/interleaving"
_CONFLICT: dict[int | str, dict[str, Any]] = {409: problem_response("Two search models cannot be interleaved now.")}


@router.post(
    _INTERLEAVING,
    operation_id="startInterleaving",
    status_code=status.HTTP_201_CREATED,
    dependencies=[Writing],
    responses=_CONFLICT,
)
def start_interleaving(hosted: Hosted, log: RequestClickLog, request: InterleavingRequest) -> InterleavingDocument:
    """Let two search models (retrievers) answer searches for pictures together, and count whose answers are clicked."""
    a, b = (usable_retriever(hosted.collection, name) for name in (request.a, request.b))
    try:
        with click_log_problems():
            log.start_interleaving(a=(a.name, a.fingerprint), b=(b.name, b.fingerprint))
            return _documents(hosted.collection, log.interleavings())[0]
    except InterleavingError as error:
        raise Problem(409, "interleaving-running", f"Another one runs: {error}.") from None


@router.get(_INTERLEAVING, operation_id="listInterleavings")
def list_interleavings(hosted: Hosted, log: RequestClickLog) -> InterleavingList:
    """Count, for each two search models that were interleaved, the searches and whose answers were clicked."""
    with click_log_problems():
        return InterleavingList(interleavings=_documents(hosted.collection, log.interleavings()))


@router.delete(_INTERLEAVING, operation_id="stopInterleaving", dependencies=[Writing])
def stop_interleaving(hosted: Hosted, log: RequestClickLog) -> InterleavingDocument:
    """Let the search model in use answer alone again; what was counted stays."""
    try:
        with click_log_problems():
            number = log.stop_interleaving().number
            reports = [report for report in log.interleavings() if report.interleaving.number == number]
    except InterleavingError:
        raise Problem(404, "no-interleaving", "No two search models are interleaved; there is none to stop.") from None
    return _documents(hosted.collection, reports)[0]


def _documents(collection: Collection, reports: list[InterleavingReport]) -> list[InterleavingDocument]:
    stored = {(one.name, one.fingerprint) for one in collection.retrievers() if one.ready}
    documents = []
    for report in reports:
        one = report.interleaving
        is_whole = {(one.a, one.a_fingerprint), (one.b, one.b_fingerprint)} <= stored
        told = {
            "state": "stopped" if one.stopped is not None else "running" if is_whole else "waiting",
            "started": iso_time(one.started),
            "stopped": None if one.stopped is None else iso_time(one.stopped),
            "p_value": report.p_value,
        }
        members = {**asdict(report), **asdict(one), **told}
        documents.append(InterleavingDocument.model_validate(members, extra="ignore"))
    return documents


votes_router = APIRouter(prefix="/v1", tags=["votes"], dependencies=[Reading])
_VOTES = "/collections/{collection}/votes"


@votes_router.post(_VOTES, status_code=status.HTTP_201_CREATED, operation_id="recordVote", dependencies=[Clicking])
def record_vote(log: RequestClickLog, vote: VoteRequest) -> VoteReceipt:
    """Remember which of two searches, of one query with two search models, a person prefers."""
    with click_log_problems():
        return VoteReceipt(id=log.record_vote(left=vote.left, right=vote.right, choice=vote.choice))


@votes_router.get(_VOTES, operation_id="listVotes")
def list_votes(log: RequestClickLog) -> VoteList:
    """Count the votes for each two search models, with the sign test on them."""
    with click_log_problems():
        return VoteList.model_validate({"pairs": log.votes()}, from_attributes=True)
