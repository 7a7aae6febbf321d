"""Long work on a collection: jobs, and the one that tries another retriever on the collection's own questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from diptych.service.context import Clicking, Context, Hosted, Reading, ServiceContext, Writing
from diptych.service.hosting import HostedCollection
from diptych.service.jobs.runner import JobRunner
from diptych.service.jobs.store import READY_MADE, Job
from diptych.service.problems import Problem
from diptych.service.rehearsals import read_rehearsals
from diptych.service.schemas.jobs import (
    JobDocument,
    JobList,
    JobRequest,
    RehearsalDocument,
    RehearsalList,
    RehearsalRequest,
    RehearseJob,
)

router = APIRouter(prefix="/v1", tags=["jobs"], dependencies=[Reading])
_JOBS = "/collections/{collection}/jobs"
_MAX_WAITING = 20
# Each stream holds a connection and looks into the store again and again.
_MOST_STREAMS = 16
_LOOK_SECONDS = 0.25
# Proxies close connections on which nothing was sent for about a minute.
_QUIET_LOOKS = 80
_EVENTS = {
    "description": "Server-sent events; the data of each is the job.",
    "content": {"text/event-stream": {}},
}
JobId = Annotated[str, Path(description="Id of the job.", max_length=100)]


@router.post(_JOBS, operation_id="startJob", status_code=status.HTTP_202_ACCEPTED, dependencies=[Writing])
def create_job(context: Context, hosted: Hosted, request: JobRequest, response: Response) -> JobDocument:
    """Start a job; the jobs of a collection run one after the other."""
    return start_job(context, hosted, request, response)


@router.get(_JOBS, operation_id="listJobs")
def list_jobs(
    context: Context, hosted: Hosted, limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 50
) -> JobList:
    """List jobs, the newest first."""
    return JobList(jobs=[_document(job) for job in context.jobs[hosted.name].store.newest(limit)])


@router.get(_JOBS + "/{job_id}", operation_id="getJob")
def get_job(context: Context, hosted: Hosted, job_id: JobId) -> JobDocument:
    """Say how far a job has come."""
    return _document(_find_job(context.jobs[hosted.name], job_id))


@router.get(
    _JOBS + "/{job_id}/events",
    operation_id="followJob",
    response_class=StreamingResponse,
    responses={status.HTTP_200_OK: _EVENTS},
)
async def follow_job(context: Context, hosted: Hosted, job_id: JobId) -> StreamingResponse:
    """Follow a job: a server-sent event with each change, until it is over or the service ends."""
    runner = context.jobs[hosted.name]
    await run_in_threadpool(_find_job, runner, job_id)
    if context.job_streams >= _MOST_STREAMS:
        detail = f"{_MOST_STREAMS} jobs are being followed; ask for the job itself now and then."
        raise Problem(503, "busy", detail, headers={"Retry-After": "2"})
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(context, runner, job_id), media_type="text/event-stream", headers=headers)


@router.delete(_JOBS + "/{job_id}", operation_id="cancelJob", dependencies=[Writing])
def cancel_job(context: Context, hosted: Hosted, job_id: JobId) -> JobDocument:
    """Cancel a job that waits or runs; what it has added stays. One that is over stays as it is."""
    runner = context.jobs[hosted.name]
    if not _find_job(runner, job_id).is_over:
        runner.store.ask_to_cancel(job_id)
        runner.wake()
    return _document(_find_job(runner, job_id))


def start_job(
    context: ServiceContext, hosted: HostedCollection, request: JobRequest, response: Response
) -> JobDocument:
    """Let a job wait for its turn, and say where to look after it."""
    runner = context.jobs[hosted.name]
    if runner.store.count("waiting") >= _MAX_WAITING:
        raise Problem(429, "too-many-jobs", f"{_MAX_WAITING} jobs are waiting; cancel some, or wait until they ran.")
    job = runner.store.add(request.root.kind, request.parameters())
    runner.wake()
    response.headers["Location"] = f"/v1/collections/{quote(hosted.name, safe='')}/jobs/{job.id}"
    return _document(job)


async def _events(context: ServiceContext, runner: JobRunner, job_id: str) -> AsyncIterator[str]:
    last, quiet, is_over = None, 0, False
    context.job_streams += 1
    try:
        while not is_over:
            job = await run_in_threadpool(runner.store.find, job_id)
            if job is None:
                return
            is_over = job.is_over
            if job != last or quiet >= _QUIET_LOOKS:
                yield ":\n\n" if job == last else f"data: {_document(job).model_dump_json()}\n\n"
                last, quiet = job, 0
            quiet += 1
            if not is_over:
                await asyncio.sleep(_LOOK_SECONDS)
    except asyncio.CancelledError:
        # The service ends; so does the stream, as if the job were over.
        return
    finally:
        context.job_streams -= 1


def _document(job: Job) -> JobDocument:
    return JobDocument.model_validate(job, from_attributes=True)


def _find_job(runner: JobRunner, job_id: str) -> Job:
    job = runner.store.find(job_id)
    if job is None:
        raise Problem(404, "no-such-job", f"There is no job {job_id!r}; list the jobs of the collection.")
    return job


rehearsals_router = APIRouter(prefix="/v1", tags=["rehearsals"], dependencies=[Reading])
_REHEARSALS = "/collections/{collection}/rehearsals"


@rehearsals_router.post(
    _REHEARSALS, operation_id="rehearse", status_code=status.HTTP_202_ACCEPTED, dependencies=[Writing]
)
def start_rehearsal(context: Context, hosted: Hosted, request: RehearsalRequest, response: Response) -> JobDocument:
    """Start the job that tries another search model beside the active one; nothing is changed."""
    known = [*READY_MADE, *(one.name for one in hosted.collection.retrievers())]
    if request.retriever not in known:
        detail = f"There is no search model {request.retriever!r}; there are {', '.join(dict.fromkeys(known))}."
        raise Problem(404, "no-such-retriever", detail)
    return start_job(context, hosted, JobRequest(RehearseJob(kind="rehearse", parameters=request)), response)


@rehearsals_router.get(_REHEARSALS, operation_id="listRehearsals", dependencies=[Clicking])
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
