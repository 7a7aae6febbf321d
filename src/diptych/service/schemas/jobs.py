"""Jobs over REST (kinds, parameters, states, outcomes), health, readiness and the session of the page."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from diptych.service.jobs.store import JobKind, JobState
from diptych.service.schemas import Document, RequestDocument
from diptych.service.schemas.retrievers import Fingerprint, RetrieverRequest


class RehearsalRequest(RequestDocument):
    """Which search model is tried, and on how much."""

    retriever: str = Field(min_length=1, max_length=200)
    """One that needs no training, as this version has it, or the name of a stored one."""
    sample: int = Field(default=500, ge=2, le=100_000)
    """How many pictures are encoded."""
    n_queries: int = Field(default=1000, ge=1, le=100_000)
    """How many captions, and how many logged queries, are asked at most."""
    random_state: int = Field(default=0, ge=0, lt=2**31)
    """Of the draws."""


class MeasureDocument(Document):
    """A measure with both search models, and how far luck explains the difference."""

    measure: str
    old: float
    """Its mean with the present search model."""
    new: float
    """Its mean with the one that was tried."""
    low: float
    """The lower end of new − old, with a confidence of 95 %."""
    high: float
    """The upper end."""
    p_value: float
    """How likely so large a difference is if neither is better: a randomisation test, two-sided."""


class QuestionDocument(Document):
    """A question whose right answer came further up or down."""

    text: str
    asked: float
    """How often it was asked; 1 for a caption."""
    old_rank: float
    """The place of the first right answer in the sample, with the present search model."""
    new_rank: float
    """Its place with the one that was tried."""
    right: list[str]
    """The ids of the right answers."""
    old_answers: list[str]
    """The ids of the first answers of the present search model."""
    new_answers: list[str]
    """The ids of the first answers of the one that was tried."""


class QuestionsDocument(Document):
    """What came out of one kind of question."""

    kind: Literal["captions", "queries"]
    """Captions, each of which should find its picture, or logged queries, which should find what was clicked."""
    n_questions: int
    n_units: int
    """How many of them are independent: pictures, or queries of different words."""
    differences: list[MeasureDocument]
    """The reciprocal rank first."""
    no_match_old: float
    """The share of questions that the present search model answers with no good match."""
    no_match_new: float
    """The same of the one that was tried."""
    n_won: int
    n_lost: int
    won: list[QuestionDocument]
    """Those whose right answer came up furthest."""
    lost: list[QuestionDocument]
    """Those whose right answer went down furthest."""


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
    outcome: Literal["better", "worse", "mixed", "undecided"]
    """What the questions say of the one that was tried; mixed where captions and queries contradict each other."""
    verdict: list[str]
    """The same in words, a sentence for each kind of question."""
    sampled: str
    """What was drawn, in words."""
    n_sample: int
    n_pictures: int
    n_captions: int
    alpha: float
    """How small p must be."""
    questions: list[QuestionsDocument]
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


class IndexParameters(RequestDocument):
    """How to bring a collection up to date."""

    remove_missing: bool = True
    """Whether to remove items whose files are gone."""


class IndexJob(RequestDocument):
    """Bring a collection up to date with the pictures in its folder."""

    kind: Literal["index"]
    parameters: IndexParameters = Field(default_factory=IndexParameters)


Seed = Annotated[int, Field(ge=0, lt=2**31, description="Of the draw of the share kept back.")]


class TrainParameters(RequestDocument):
    """How to learn a search model (retriever) from the collection's captions."""

    method: str | None = Field(default=None, min_length=1, max_length=100)
    """The method; by default the best of a few."""
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    """The parameters of the method."""
    held_out: float = Field(default=0.2, ge=0.05, le=0.5)
    """The share of pictures kept back at a time for the comparison with the present search model."""
    seed: Seed = 0
    force: bool = False
    """Take the new search model even if it does not pass the gate; rolling back undoes it."""


class TrainJob(RequestDocument):
    """Learn a search model from the collection's captions or labels, and use it where it passes the gate."""

    kind: Literal["train"]
    parameters: TrainParameters = Field(default_factory=TrainParameters)


class LearnParameters(RequestDocument):
    """How to learn from what people clicked."""

    held_out: float = Field(default=0.3, ge=0.05, le=0.5)
    """The share of searches, the latest, that judge what was learned from the others."""
    alpha: float = Field(default=0.01, ge=0.0001, le=0.5)
    """The error budget: the chance that clicks without meaning ever take over; every comparison uses some of it."""
    dry_run: bool = False
    """Compare only; change nothing."""


class LearnJob(RequestDocument):
    """Learn a search model from what people clicked, and use it where it is better than the present one."""

    kind: Literal["learn"]
    parameters: LearnParameters = Field(default_factory=LearnParameters)


class NoParameters(RequestDocument):
    """There is nothing to choose."""


class ReencodeJob(RequestDocument):
    """Finish a change of search model that was begun."""

    kind: Literal["reencode"]
    parameters: NoParameters = Field(default_factory=NoParameters)


class MapParameters(RequestDocument):
    """How to draw a map of a collection."""

    retriever: str | None = Field(default=None, min_length=1, max_length=200)
    """The search model that places the items; by default the active one."""


class MapJob(RequestDocument):
    """Draw the map of the collection."""

    kind: Literal["map"]
    parameters: MapParameters = Field(default_factory=MapParameters)


class RetrieverJob(RequestDocument):
    """Read every item with another search model as well, so that both can be searched and compared."""

    kind: Literal["retriever"]
    parameters: RetrieverRequest


class RehearseJob(RequestDocument):
    """Try another search model on a sample of the collection, beside the present one; nothing is changed."""

    kind: Literal["rehearse"]
    parameters: RehearsalRequest


class ReadTextJob(RequestDocument):
    """Read the words that stand in the pictures; one that was interrupted goes on where it was."""

    kind: Literal["read_text"]
    parameters: NoParameters = Field(default_factory=NoParameters)


class RegionsParameters(RequestDocument):
    """Whose regions to read."""

    retriever: str | None = Field(default=None, min_length=1, max_length=200)
    """The search model (retriever) that reads them; by default the active one."""


class RegionsJob(RequestDocument):
    """Look at parts of the pictures, so that small things are found; one that was interrupted goes on where it was."""

    kind: Literal["regions"]
    parameters: RegionsParameters = Field(default_factory=RegionsParameters)


AnyJob = IndexJob | TrainJob | LearnJob | ReencodeJob | MapJob | RetrieverJob | RehearseJob | ReadTextJob | RegionsJob


class JobRequest(RootModel[Annotated[AnyJob, Field(discriminator="kind")]]):
    """What is to be done, and how."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that were given."""
        return self.root.parameters.model_dump(exclude_unset=True)


class JobDocument(Document):
    """A piece of long work, and how far it has come."""

    id: str
    """Its name in addresses."""
    kind: JobKind
    """What it does."""
    parameters: dict[str, Any]
    """What it was asked with."""
    state: JobState
    """Where it stands; interrupted means that the service ended before it did."""
    done: int
    """How much is done, of `total`."""
    total: int
    """How much there is to do; 0 when that cannot be said."""
    message: str
    """What it does, or did last, in words; empty before it begins."""
    error: str | None
    """Why it failed, in one sentence; null unless it did."""
    result: dict[str, Any] | None
    """What came out, by its kind; null until it has succeeded."""
    created: str
    """When it was asked for, ISO 8601."""
    started: str | None
    """When it began, ISO 8601; null while it waits."""
    finished: str | None
    """When it ended, in whichever way; null until then."""


class JobList(Document):
    """Jobs, the newest first."""

    jobs: list[JobDocument]


class HealthDocument(BaseModel):
    """That the process lives."""

    status: Literal["ok"]


class ReadinessDocument(BaseModel):
    """Whether every collection can be searched."""

    ready: bool
    collections: dict[str, str] = Field(description="By name: ready, or why not; nothing for those who may not read.")


class SessionDocument(BaseModel):
    """Whether a browser may write, and what its requests carry to do so."""

    signed_in: bool
    needs_token: bool = Field(description="Whether reading needs the token or a session as well.")
    csrf: str | None = Field(description="For the header X-Diptych-CSRF of every request that changes something.")
    read_only: bool
    version: str


class SignIn(BaseModel):
    """The token, or the key of an address that works once: with either a browser begins a session."""

    # Mistakes are told to the client with what was wrong, which must not be the secret.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token: str | None = Field(default=None, min_length=1, max_length=1_000)
    key: str | None = Field(default=None, min_length=1, max_length=1_000)

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.token is None) == (self.key is None):
            raise ValueError("give the token or a key, one of them")
        return self
