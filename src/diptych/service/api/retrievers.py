"""The retrievers of a collection."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response, status

from diptych.collection import Collection, CollectionError, StoredRetriever
from diptych.retriever.explaining import explanation_kind
from diptych.service.api.collections import collection_document
from diptych.service.api.jobs import start_job
from diptych.service.context import Context, Hosted
from diptych.service.jobs.work import READY_MADE
from diptych.service.problem import Problem
from diptych.service.problem_response import problem_response
from diptych.service.schemas.collection_document import CollectionDocument
from diptych.service.schemas.job_document import JobDocument
from diptych.service.schemas.job_request import JobRequest
from diptych.service.schemas.retriever_document import Explains, RetrieverDocument
from diptych.service.schemas.retriever_job import RetrieverJob
from diptych.service.schemas.retriever_list import RetrieverList
from diptych.service.schemas.retriever_request import RetrieverRequest
from diptych.service.security.guards import Reading, Writing

router = APIRouter(prefix="/v1", tags=["retrievers"], dependencies=[Reading])

_RETRIEVERS = "/collections/{collection}/retrievers"
_CONFLICT: dict[int | str, dict[str, Any]] = {409: problem_response("The retriever is not in a state for this.")}

RetrieverName = Annotated[str, Path(description="Name of the retriever.", max_length=200)]


@router.get(_RETRIEVERS, operation_id="listRetrievers")
def list_retrievers(hosted: Hosted) -> RetrieverList:
    """List the retrievers that a collection can be searched with."""
    stored = hosted.collection.retrievers()
    taken = {one.name for one in stored}
    return RetrieverList(
        retrievers=[
            RetrieverDocument(
                name=one.name,
                fingerprint=one.fingerprint,
                active=one.active,
                ready=one.ready,
                missing=one.missing,
                kind=one.kind,
                explains=_explains(hosted.collection, one.name),
            )
            for one in stored
        ],
        available=[name for name in READY_MADE if name not in taken],
    )


@router.post(_RETRIEVERS, operation_id="addRetriever", status_code=status.HTTP_202_ACCEPTED, dependencies=[Writing])
def add_retriever(context: Context, hosted: Hosted, request: RetrieverRequest, response: Response) -> JobDocument:
    """Start the job that adds a retriever beside the active one."""
    return start_job(context, hosted, JobRequest(RetrieverJob(kind="retriever", parameters=request)), response)


@router.post(
    _RETRIEVERS + "/{name}/activate", operation_id="activateRetriever", dependencies=[Writing], responses=_CONFLICT
)
def activate_retriever(context: Context, hosted: Hosted, name: RetrieverName) -> CollectionDocument:
    """Let searches use a retriever from now on; the one before stays stored."""
    usable_retriever(hosted.collection, name)
    hosted.collection.activate_retriever(name)
    return collection_document(context, hosted)


@router.delete(
    _RETRIEVERS + "/{name}",
    operation_id="removeRetriever",
    status_code=status.HTTP_204_NO_CONTENT,
    dependencies=[Writing],
    responses=_CONFLICT,
)
def remove_retriever(hosted: Hosted, name: RetrieverName) -> None:
    """Forget a retriever and its points."""
    _check_known(hosted.collection, name)
    if any(one.active for one in hosted.collection.retrievers() if one.name == name):
        raise Problem(409, "retriever-active", f"{name!r} is the active retriever; activate another one first.")
    hosted.collection.remove_retriever(name)


def usable_retriever(collection: Collection, name: str) -> StoredRetriever:
    """Return a stored retriever that searches can use, by its name."""
    _check_known(collection, name)
    found = next(one for one in collection.retrievers() if one.name == name)
    if not found.ready:
        detail = f"The points of {name!r} are unfinished; start its job again, then try again."
        raise Problem(409, "retriever-unfinished", detail)
    return found


def _check_known(collection: Collection, name: str) -> None:
    known = [one.name for one in collection.retrievers()]
    if name not in known:
        raise Problem(404, "no-such-retriever", f"There is no retriever {name!r}; there are {', '.join(known)}.")


def _explains(collection: Collection, name: str) -> Explains:
    try:
        return explanation_kind(getattr(collection.retriever_named(name), "model_", None))
    except CollectionError:
        # Removed since it was listed, or its encoders are not on this machine.
        return "none"
