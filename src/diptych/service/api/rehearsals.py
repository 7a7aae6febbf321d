"""Routes of rehearsals: another search model on the collection's own questions, before anything is changed."""

from __future__ import annotations

from fastapi import APIRouter

from diptych.collection.learning.rehearsal_report import Outcome, RehearsedQuestions
from diptych.collection.store.store import Store
from diptych.service.api.documents import Document, Fingerprint
from diptych.service.context import Clicking, Hosted, Reading


class RehearsalDocument(Document):
    """Two search models, side by side, on a sample of the collection."""

    retriever: str
    """What was asked for."""
    made: str
    """When, ISO 8601."""
    old: str
    """The present search model then."""
    old_fingerprint: Fingerprint
    new: str
    """The one that was tried."""
    new_fingerprint: Fingerprint
    outcome: Outcome
    """What the questions say of the one that was tried; mixed where captions and queries contradict each other."""
    verdict: list[str]
    """The same in words, a sentence for each kind of question."""
    sampled: str
    """What was drawn, in words."""
    n_sample: int
    """How many pictures were drawn."""
    n_pictures: int
    """How many pictures the collection has."""
    n_captions: int
    """How many captions it has."""
    random_state: int
    """Of the draws."""
    alpha: float
    """How small p must be."""
    questions: list[RehearsedQuestions]
    """What came out, for captions and for logged queries."""
    n_unjudged: int
    """How many logged queries have no clicked picture in the sample."""
    overlap: float | None
    """The share of the first ten answers to these that both search models have in common."""
    reencode_seconds: float
    """What encoding the whole collection would take at the pace of the sample."""
    reads_pictures: bool
    """Whether pictures would have to be read again."""
    notes: list[str]
    """What makes the comparison less fair, or less sure, than it looks."""


class RehearsalList(Document):
    """What was tried, the latest first; one report for each search model."""

    rehearsals: list[RehearsalDocument]
    """The latest first."""


router = APIRouter(prefix="/v1", tags=["rehearsals"], dependencies=[Reading])
_REHEARSALS = "/collections/{collection}/rehearsals"


@router.get(_REHEARSALS, operation_id="listRehearsals", dependencies=[Clicking])
def list_rehearsals(hosted: Hosted) -> RehearsalList:
    """List what was tried, with the queries won and lost, the latest first; they are forgotten with the clicks."""
    return RehearsalList(rehearsals=read_rehearsals(hosted.collection.store))


def read_rehearsals(store: Store) -> list[RehearsalDocument]:
    """Return the reports of rehearsals that are kept, the latest first."""
    with store.reading() as db:
        rows = db.rows("SELECT report FROM rehearsal ORDER BY made DESC, fingerprint")
    return [RehearsalDocument.model_validate_json(report, extra="ignore") for (report,) in rows]
