"""Routes of the search models (retrievers) of a collection, with their history and the way back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, status
from pydantic import with_config

from diptych.collection import Collection, CollectionError, StoredRetriever
from diptych.collection.store.model_history import LearningRecord
from diptych.service.api.collections import CollectionDocument, collection_document
from diptych.service.api.documents import DOCUMENTED, Document, Fingerprint
from diptych.service.context import Clicking, Context, Hosted, Reading, Writing
from diptych.service.jobs.store import READY_MADE
from diptych.service.problems import Problem, problem_response

with_config(DOCUMENTED)(LearningRecord)
Explains = Literal["parts", "classes", "labels", "words", "none"]


class RetrieverDocument(Document):
    """One of the search models of a collection."""

    name: str
    """What searches call it."""
    fingerprint: Fingerprint
    active: bool
    """Whether searches use it unless they name another."""
    ready: bool
    """Whether all its points have been made."""
    missing: int
    """How many pictures and captions have no point."""
    kind: str
    """The class of its model."""
    explains: Explains
    """What it can say about why an answer is there."""


class RetrieverList(Document):
    """The search models of a collection, the active one first."""

    retrievers: list[RetrieverDocument]
    """Those that can be searched with."""
    available: list[str]
    """Those that a job of kind retriever adds by name."""


class LearningDocument(Document):
    """The history of retrievers, and the way back."""

    steps: list[LearningRecord]
    """The latest first."""
    rolls_back_to: str | None
    """The search model that going back would use again; null where the active one replaced none that is stored."""


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
    from diptych.retriever import explanation_kind

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
    from diptych.collection.learning import rolls_back_to

    steps = list(reversed(hosted.collection.retriever_history()))
    return LearningDocument(steps=steps, rolls_back_to=rolls_back_to(hosted.collection))


@learning_router.post(
    _LEARNING + "/rollback", operation_id="rollBack", dependencies=[Writing], responses=_NOTHING_TO_ROLL_BACK
)
def roll_back(hosted: Hosted) -> LearningRecord:
    """Let searches use the search model from before the last change again; the one that leaves stays stored."""
    from diptych.collection.learning import rollback, rolls_back_to

    if rolls_back_to(hosted.collection) is None:
        detail = "The search model in use replaced no other one, or the one before it is gone; activate one by name."
        raise Problem(409, "nothing-to-roll-back", detail)
    return rollback(hosted.collection)
