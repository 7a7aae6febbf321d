"""Learning from clicks: what changed, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter

from diptych.collection import Collection
from diptych.collection.learning import LearningRecord, learning_history, rollback
from diptych.collection.learning.promotion import promotion_to
from diptych.service.context import Hosted
from diptych.service.problem import Problem
from diptych.service.problem_response import problem_response
from diptych.service.schemas.learning_document import LearningDocument
from diptych.service.schemas.learning_step import LearningStep
from diptych.service.schemas.query_change import QueryChange
from diptych.service.security.guards import Clicking, Reading, Writing

router = APIRouter(prefix="/v1", tags=["learning"], dependencies=[Reading])

_LEARNING = "/collections/{collection}/learning"
_CONFLICT: dict[int | str, dict[str, Any]] = {409: problem_response("There is nothing to go back to.")}


@router.get(_LEARNING, operation_id="getLearning", dependencies=[Clicking])
def get_learning(hosted: Hosted) -> LearningDocument:
    """List what was learned from clicks, with measures before and after; a job of kind learn learns."""
    history = learning_history(hosted.collection)
    steps = [_step(record) for record in reversed(history)]
    return LearningDocument(steps=steps, rolls_back_to=_former(hosted.collection, history))


@router.post(_LEARNING + "/rollback", operation_id="rollBack", dependencies=[Writing], responses=_CONFLICT)
def roll_back(hosted: Hosted) -> LearningStep:
    """Let searches use the retriever from before the last promotion again; the one that leaves stays stored."""
    if _former(hosted.collection, learning_history(hosted.collection)) is None:
        detail = "The active retriever was not learned from clicks, or the one before it is gone; activate one by name."
        raise Problem(409, "nothing-to-roll-back", detail)
    return _step(rollback(hosted.collection))


def _former(collection: Collection, history: list[LearningRecord]) -> str | None:
    """Return the name of the retriever before the one in force, where that was promoted."""
    stored = {one.fingerprint: one for one in collection.retrievers()}
    active = next((one.fingerprint for one in stored.values() if one.active), "")
    promoted = promotion_to(active, history)
    former = None if promoted is None else stored.get(promoted.before_fingerprint)
    return None if former is None else former.name


def _step(record: LearningRecord) -> LearningStep:
    known: dict[str, Any] = {
        name: value for name, value in record.to_json().items() if name in LearningStep.model_fields
    }
    known["gained"], known["lost"] = _changes(record.gained), _changes(record.lost)
    return LearningStep(**known)


def _changes(told: Sequence[tuple[str, float, float]]) -> list[QueryChange]:
    return [QueryChange(query=query, before=old, after=new) for query, old, new in told]
