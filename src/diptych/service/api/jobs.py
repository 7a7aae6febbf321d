"""Long work on a collection."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response, status

from diptych.service.context import Context, Hosted, Reading, ServiceContext, Writing
from diptych.service.hosting import HostedCollection
from diptych.service.jobs.runner import JobRunner
from diptych.service.jobs.store import Job
from diptych.service.problems import Problem
from diptych.service.schemas.jobs import JobDocument, JobList, JobRequest

router = APIRouter(prefix="/v1", tags=["jobs"], dependencies=[Reading])
_JOBS = "/collections/{collection}/jobs"
_MAX_WAITING = 20
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


def _document(job: Job) -> JobDocument:
    return JobDocument.model_validate(job, from_attributes=True)


def _find_job(runner: JobRunner, job_id: str) -> Job:
    job = runner.store.find(job_id)
    if job is None:
        raise Problem(404, "no-such-job", f"There is no job {job_id!r}; list the jobs of the collection.")
    return job
