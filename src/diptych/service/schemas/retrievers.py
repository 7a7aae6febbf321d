"""The retrievers of a collection over REST, and what they learned from clicks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from diptych.service.jobs.store import ReadyMadeRetriever
from diptych.service.schemas import Document, RequestDocument

Fingerprint = Annotated[str, Field(description="A digest of everything that shapes the points of a retriever.")]


class RetrieverSummary(Document):
    """Which retriever made an answer."""

    name: str
    """What people call it."""
    fingerprint: Fingerprint


Explains = Literal["parts", "classes", "labels", "words", "pairs", "none"]


class RetrieverDocument(Document):
    """One of the retrievers of a collection."""

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
    """The retrievers of a collection, the active one first."""

    retrievers: list[RetrieverDocument]
    """Those that can be searched with."""
    available: list[str]
    """Those that can be added by name."""


class RetrieverRequest(RequestDocument):
    """Which retriever is to be added."""

    name: ReadyMadeRetriever
    """One that needs no training."""


class QueryChange(Document):
    """A query that was kept back, and how well it was answered before and after."""

    query: str
    before: float
    """The measure with the retriever in force."""
    after: float
    """The measure with the one that was learned."""


class LearningStep(Document):
    """What was learned and compared when, and what became of it."""

    time: str
    """When, ISO 8601."""
    action: Literal["promoted", "kept", "rolled back"]
    """Whether the learned retriever took over, everything stayed as it was, or an earlier one came back."""
    before: str
    """The retriever in force before."""
    before_fingerprint: Fingerprint
    after: str
    """The retriever in force afterwards."""
    after_fingerprint: Fingerprint
    reason: str
    compared_with: str
    """The retriever that the learned one had to beat: the one in force or, if that was learned, the one beneath it."""
    measure: str
    """What was compared, such as NDCG@10; empty where nothing was."""
    old: float | None
    """Its mean over the queries kept back, with `compared_with`."""
    new: float | None
    """Its mean with the one that was learned."""
    p_value: float | None
    """How likely so large a difference is if neither is better: a randomisation test, two-sided."""
    alpha: float | None
    """How small that had to be."""
    n_queries: int
    """How many different queries were learned from."""
    n_held_out: int
    """How many of them were kept back for the comparison."""
    n_clicks: float
    answered: float | None
    """The share of queries kept back for which the log knew something."""
    parts: dict[str, float]
    """The weight of each part of what was learned; `present` is `compared_with`."""
    gained: list[QueryChange]
    """The queries that gained most."""
    lost: list[QueryChange]
    """The queries that lost most."""


class LearningDocument(Document):
    """Every step of learning from clicks, and the way back."""

    steps: list[LearningStep]
    """The latest first."""
    rolls_back_to: str | None
    """The retriever that going back would use again; null where the active one was not learned from clicks."""
