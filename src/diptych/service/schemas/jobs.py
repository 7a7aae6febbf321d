"""Jobs over REST: each kind with its parameters, and the state of a job."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, RootModel

from diptych.service.jobs.store import JobKind, JobState
from diptych.service.schemas import Document, RequestDocument
from diptych.service.schemas.rehearsals import RehearsalRequest
from diptych.service.schemas.retrievers import RetrieverRequest


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
    """How to learn a retriever from the collection's captions."""

    method: str | None = Field(default=None, min_length=1, max_length=100)
    """The method; by default the best of a few."""
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    """The parameters of the method."""
    held_out: float = Field(default=0.2, ge=0.05, le=0.9)
    """The share of pictures kept back for the comparison with the present retriever."""
    seed: Seed = 0
    force: bool = False
    """Take the new retriever even if it is not better."""


class TrainJob(RequestDocument):
    """Learn a retriever from the collection, and use it where it is better than the present one."""

    kind: Literal["train"]
    parameters: TrainParameters = Field(default_factory=TrainParameters)


class LearnParameters(RequestDocument):
    """How to learn from what people clicked."""

    held_out: float = Field(default=0.2, ge=0.05, le=0.5)
    """The share of queries kept back for the comparison with the present retriever."""
    alpha: float = Field(default=0.01, ge=0.0001, le=0.5)
    """How small p must be for the new retriever to take over."""
    seed: Seed = 0
    dry_run: bool = False
    """Compare only; change nothing."""


class LearnJob(RequestDocument):
    """Learn a retriever from what people clicked, and use it where it is better than the present one."""

    kind: Literal["learn"]
    parameters: LearnParameters = Field(default_factory=LearnParameters)


class NoParameters(RequestDocument):
    """There is nothing to choose."""


class ReencodeJob(RequestDocument):
    """Finish a change of retriever that was begun."""

    kind: Literal["reencode"]
    parameters: NoParameters = Field(default_factory=NoParameters)


class MapParameters(RequestDocument):
    """How to draw a map of a collection."""

    retriever: str | None = Field(default=None, min_length=1, max_length=200)
    """Whose points to show; by default those of the active retriever."""


class MapJob(RequestDocument):
    """Draw the map of the collection."""

    kind: Literal["map"]
    parameters: MapParameters = Field(default_factory=MapParameters)


class RetrieverJob(RequestDocument):
    """Give every item a point of another retriever as well, so that both can be searched and compared."""

    kind: Literal["retriever"]
    parameters: RetrieverRequest


class RehearseJob(RequestDocument):
    """Try another retriever on a sample of the collection, beside the present one; nothing is changed."""

    kind: Literal["rehearse"]
    parameters: RehearsalRequest


AnyJob = IndexJob | TrainJob | LearnJob | ReencodeJob | MapJob | RetrieverJob | RehearseJob


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
    parameters: dict[str, Any]
    state: JobState
    """Where it stands; interrupted means that the service ended before it did."""
    done: int
    total: int
    """How much there is to do; 0 when that cannot be said."""
    message: str
    error: str | None
    result: dict[str, Any] | None
    created: str
    """When it was asked for, ISO 8601."""
    started: str | None
    finished: str | None


class JobList(Document):
    """Jobs, the newest first."""

    jobs: list[JobDocument]
