"""Rehearsal routes: trying another retriever on the collection's own questions, before anything is changed."""

from __future__ import annotations

from fastapi import APIRouter, Response, status
from pydantic import ValidationError

from diptych.service.api.jobs import start_job
from diptych.service.context import Clicking, Context, Hosted, Reading, Writing
from diptych.service.jobs.store import READY_MADE
from diptych.service.problems import Problem
from diptych.service.rehearsals import read_rehearsals
from diptych.service.schemas.jobs import JobDocument, JobRequest, RehearseJob
from diptych.service.schemas.rehearsals import RehearsalDocument, RehearsalList, RehearsalRequest

router = APIRouter(prefix="/v1", tags=["rehearsals"], dependencies=[Reading])
_REHEARSALS = "/collections/{collection}/rehearsals"


@router.post(_REHEARSALS, operation_id="rehearse", status_code=status.HTTP_202_ACCEPTED, dependencies=[Writing])
def start_rehearsal(context: Context, hosted: Hosted, request: RehearsalRequest, response: Response) -> JobDocument:
    """Start the job that tries another search model beside the active one; nothing is changed."""
    known = [*READY_MADE, *(one.name for one in hosted.collection.retrievers())]
    if request.retriever not in known:
        detail = f"There is no search model {request.retriever!r}; there are {', '.join(dict.fromkeys(known))}."
        raise Problem(404, "no-such-retriever", detail)
    return start_job(context, hosted, JobRequest(RehearseJob(kind="rehearse", parameters=request)), response)


@router.get(_REHEARSALS, operation_id="listRehearsals", dependencies=[Clicking])
def list_rehearsals(hosted: Hosted) -> RehearsalList:
    """List what was tried, with the queries won and lost, the latest first; they are forgotten with the clicks."""
    found = []
    for report in read_rehearsals(hosted.collection):
        try:
            found.append(RehearsalDocument.model_validate(report, extra="ignore"))
        except ValidationError:
            # Another version wrote it.
            continue
    return RehearsalList(rehearsals=found)
