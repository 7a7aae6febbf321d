"""Routes of jobs, which are long work on a collection: start one, look how far it is, follow it, cancel it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import Field, RootModel, with_config

from diptych.service.api.documents import DOCUMENTED, Document, RequestDocument, RetrieverChoice, with_examples
from diptych.service.context import Context, Hosted, Reading, ServiceContext, Writing
from diptych.service.jobs.runner import JobRunner
from diptych.service.jobs.store import Job, ReadyMadeRetriever
from diptych.service.problems import Problem

with_config(DOCUMENTED)(Job)


class IndexJob(RequestDocument):
    """Bring a collection up to date with the pictures in its folder."""

    kind: Literal["index"]
    """The kind of job."""
    remove_missing: bool = True
    """Whether to remove items whose files are gone."""


class TrainJob(RequestDocument):
    """Learn a search model from the collection's captions or labels, and use it where it passes the gate."""

    kind: Literal["train"]
    """The kind of job."""
    method: str | None = Field(default=None, min_length=1, max_length=100)
    """The method; by default the best of a few."""
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    """The parameters of the method."""
    held_out: float = Field(default=0.2, ge=0.05, le=0.5)
    """The share of pictures kept back at a time for the comparison with the present search model."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Of the draw of the share kept back."""
    force: bool = False
    """Take the new search model even if it does not pass the gate; rolling back undoes it."""


class LearnJob(RequestDocument):
    """Learn a search model from what people clicked, and use it where it is better than the present one."""

    kind: Literal["learn"]
    """The kind of job."""
    held_out: float = Field(default=0.3, ge=0.05, le=0.5)
    """The share of searches, the latest, that judge what was learned from the others."""
    alpha: float = Field(default=0.01, ge=0.0001, le=0.5)
    """The error budget: the chance that clicks without meaning ever take over; every comparison uses some of it."""
    dry_run: bool = False
    """Compare only; change nothing."""


class ReencodeJob(RequestDocument):
    """Finish a change of search model that was begun."""

    kind: Literal["reencode"]
    """The kind of job."""


class MapJob(RequestDocument):
    """Draw the map of the collection."""

    kind: Literal["map"]
    """The kind of job."""
    retriever: RetrieverChoice = None


class RetrieverJob(RequestDocument):
    """Read every item with another search model as well, so that both can be searched and compared."""

    kind: Literal["retriever"]
    """The kind of job."""
    name: ReadyMadeRetriever
    """One that needs no training."""


class RehearseJob(RequestDocument):
    """Try another search model on a sample of the collection, beside the present one; nothing is changed."""

    kind: Literal["rehearse"]
    """The kind of job."""
    retriever: str = Field(min_length=1, max_length=200)
    """One that needs no training, as this version has it, or the name of a stored one."""
    sample: int = Field(default=500, ge=2, le=100_000)
    """How many pictures are encoded."""
    n_queries: int = Field(default=1000, ge=1, le=100_000)
    """How many captions, and how many logged queries, are asked at most."""
    random_state: int = Field(default=0, ge=0, lt=2**31)
    """Of the draws."""


class ReadTextJob(RequestDocument):
    """Read the words that stand in the pictures; one that was interrupted goes on where it was."""

    kind: Literal["read_text"]
    """The kind of job."""


class RegionsJob(RequestDocument):
    """Look at parts of the pictures, so that small things are found; one that was interrupted goes on where it was."""

    kind: Literal["regions"]
    """The kind of job."""
    retriever: RetrieverChoice = None


AnyJob = IndexJob | TrainJob | LearnJob | ReencodeJob | MapJob | RetrieverJob | RehearseJob | ReadTextJob | RegionsJob


class JobRequest(RootModel[Annotated[AnyJob, Field(discriminator="kind")]]):
    """What is to be done, and how."""

    model_config = with_examples(
        {"kind": "index"}, {"kind": "train", "method": "cca", "parameters": {"n_components": 64}}
    )


class JobList(Document):
    """Jobs, the newest first."""

    jobs: list[Job]
    """The newest first."""


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
def start_job(context: Context, hosted: Hosted, request: JobRequest, response: Response) -> Job:
    """Start a job; the jobs of a collection run one after the other."""
    runner = context.jobs[hosted.name]
    if runner.store.count("waiting") >= _MAX_WAITING:
        raise Problem(429, "too-many-jobs", f"{_MAX_WAITING} jobs are waiting; cancel some, or wait until they ran.")
    job = runner.store.add(request.root.kind, request.root.model_dump(exclude={"kind"}, exclude_unset=True))
    runner.wake()
    response.headers["Location"] = f"/v1/collections/{quote(hosted.name, safe='')}/jobs/{job.id}"
    return job


@router.get(_JOBS, operation_id="listJobs")
def list_jobs(
    context: Context, hosted: Hosted, limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 50
) -> JobList:
    """List jobs, the newest first."""
    return JobList(jobs=context.jobs[hosted.name].store.newest(limit))


@router.get(_JOBS + "/{job_id}", operation_id="getJob")
def get_job(context: Context, hosted: Hosted, job_id: JobId) -> Job:
    """Say how far a job has come."""
    return _find_job(context.jobs[hosted.name], job_id)


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
def cancel_job(context: Context, hosted: Hosted, job_id: JobId) -> Job:
    """Cancel a job that waits or runs; what it has added stays. One that is over stays as it is."""
    runner = context.jobs[hosted.name]
    if not _find_job(runner, job_id).is_over:
        runner.store.ask_to_cancel(job_id)
        runner.wake()
    return _find_job(runner, job_id)


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
                yield ":\n\n" if job == last else f"data: {json.dumps(asdict(job), ensure_ascii=False)}\n\n"
                last, quiet = job, 0
            quiet += 1
            if not is_over:
                await asyncio.sleep(_LOOK_SECONDS)
    except asyncio.CancelledError:
        # The service ends; so does the stream, as if the job were over.
        return
    finally:
        context.job_streams -= 1


def _find_job(runner: JobRunner, job_id: str) -> Job:
    job = runner.store.find(job_id)
    if job is None:
        raise Problem(404, "no-such-job", f"There is no job {job_id!r}; list the jobs of the collection.")
    return job
