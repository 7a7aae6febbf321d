"""Retriever routes: list, add, activate and remove retrievers; the history of changes, and the way back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Response, status

from diptych.collection import Collection, CollectionError, StoredRetriever
from diptych.service.api.collections import collection_document
from diptych.service.api.jobs import start_job
from diptych.service.context import Clicking, Context, Hosted, Reading, Writing
from diptych.service.jobs.store import READY_MADE
from diptych.service.problems import Problem, problem_response
from diptych.service.schemas.collections import CollectionDocument
from diptych.service.schemas.jobs import JobDocument, JobRequest, RetrieverJob
from diptych.service.schemas.retrievers import (
    Explains,
    LearningDocument,
    LearningStep,
    RetrieverDocument,
    RetrieverList,
    RetrieverRequest,
)

if TYPE_CHECKING:
    from diptych.collection.learning import LearningRecord

router = APIRouter(prefix="/v1", tags=["retrievers"], dependencies=[Reading])
_RETRIEVERS = "/collections/{collection}/retrievers"
_NOT_USABLE: dict[int | str, dict[str, Any]] = {409: problem_response("The search model is not in a state for this.")}
RetrieverName = Annotated[str, Path(description="Name of the search model (retriever).", max_length=200)]


@router.get(_RETRIEVERS, operation_id="listRetrievers")
def list_retrievers(hosted: Hosted) -> RetrieverList:
    """List the search models (retrievers) that a collection can be searched with."""
    stored = hosted.collection.retrievers()
    taken = {one.name for one in stored}
    return RetrieverList(
        retrievers=[
            RetrieverDocument(**asdict(one), explains=_explains(hosted.collection, one.name)) for one in stored
        ],
        available=[name for name in READY_MADE if name not in taken],
    )


@router.post(_RETRIEVERS, operation_id="addRetriever", status_code=status.HTTP_202_ACCEPTED, dependencies=[Writing])
def add_retriever(context: Context, hosted: Hosted, request: RetrieverRequest, response: Response) -> JobDocument:
    """Start the job that adds a search model beside the active one."""
    return start_job(context, hosted, JobRequest(RetrieverJob(kind="retriever", parameters=request)), response)


@router.post(
    _RETRIEVERS + "/{name}/activate", operation_id="activateRetriever", dependencies=[Writing], responses=_NOT_USABLE
)
def activate_retriever(context: Context, hosted: Hosted, name: RetrieverName) -> CollectionDocument:
    """Let searches use a search model from now on; the one before stays stored."""
    usable_retriever(hosted.collection, name)
    hosted.collection.activate_retriever(name)
    return collection_document(context, hosted)


@router.delete(
    _RETRIEVERS + "/{name}",
    operation_id="removeRetriever",
    status_code=status.HTTP_204_NO_CONTENT,
    dependencies=[Writing],
    responses=_NOT_USABLE,
)
def remove_retriever(hosted: Hosted, name: RetrieverName) -> None:
    """Delete a search model and what it stored of each item."""
    if _stored(hosted.collection, name).active:
        raise Problem(409, "retriever-active", f"{name!r} is the search model in use; activate another one first.")
    hosted.collection.remove_retriever(name)


def usable_retriever(collection: Collection, name: str) -> StoredRetriever:
    """Return a stored retriever that searches can use, by its name."""
    found = _stored(collection, name)
    if not found.ready:
        detail = f"The points of {name!r} are unfinished; start its job again, then try again."
        raise Problem(409, "retriever-unfinished", detail)
    return found


def _stored(collection: Collection, name: str) -> StoredRetriever:
    known = {one.name: one for one in collection.retrievers()}
    if name not in known:
        raise Problem(404, "no-such-retriever", f"There is no search model {name!r}; there are {', '.join(known)}.")
    return known[name]


def _explains(collection: Collection, name: str) -> Explains:
    # Imported where it is asked for, as below: a service starts without the methods.
    from diptych.retriever.explaining import explanation_kind

    try:
        return explanation_kind(getattr(collection.retriever_named(name), "model_", None))
    except CollectionError:
        # Removed since it was listed, or its encoders are not on this machine.
        return "none"


learning_router = APIRouter(prefix="/v1", tags=["learning"], dependencies=[Reading])
_LEARNING = "/collections/{collection}/learning"
_NOTHING_TO_ROLL_BACK: dict[int | str, dict[str, Any]] = {409: problem_response("There is nothing to go back to.")}


@learning_router.get(_LEARNING, operation_id="getLearning", dependencies=[Clicking])
def get_learning(hosted: Hosted) -> LearningDocument:
    """List every change of the search model and every comparison, with measures before and after."""
    from diptych.collection.learning.promotion import learning_history, rolls_back_to

    history = learning_history(hosted.collection)
    steps = [_learning_step(record) for record in reversed(history)]
    return LearningDocument(steps=steps, rolls_back_to=rolls_back_to(hosted.collection, history))


@learning_router.post(
    _LEARNING + "/rollback", operation_id="rollBack", dependencies=[Writing], responses=_NOTHING_TO_ROLL_BACK
)
def roll_back(hosted: Hosted) -> LearningStep:
    """Let searches use the search model from before the last change again; the one that leaves stays stored."""
    from diptych.collection.learning.promotion import learning_history, rollback, rolls_back_to

    if rolls_back_to(hosted.collection, learning_history(hosted.collection)) is None:
        detail = "The search model in use replaced no other one, or the one before it is gone; activate one by name."
        raise Problem(409, "nothing-to-roll-back", detail)
    return _learning_step(rollback(hosted.collection))


def _learning_step(record: LearningRecord) -> LearningStep:
    changes = {
        name: [{"query": query, "before": before, "after": after} for query, before, after in told]
        for name, told in (("gained", record.gained), ("lost", record.lost))
    }
    return LearningStep.model_validate({**record.to_json(), **changes}, extra="ignore")
