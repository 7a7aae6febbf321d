"""The retrievers of a collection over REST, and their history."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from diptych.service.jobs.store import ReadyMadeRetriever
from diptych.service.schemas import Document, RequestDocument

Fingerprint = Annotated[str, Field(description="A digest of all that shapes what a search model (retriever) stores.")]


class RetrieverSummary(Document):
    """Which search model (retriever) made an answer."""

    name: str
    """What people call it."""
    fingerprint: Fingerprint


Explains = Literal["parts", "classes", "labels", "words", "pairs", "none"]


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
    """Those that can be added by name."""


class RetrieverRequest(RequestDocument):
    """Which search model is to be added."""

    name: ReadyMadeRetriever
    """One that needs no training."""


class QueryChange(Document):
    """A query that was kept back, and how well it was answered before and after."""

    query: str
    before: float
    """The measure with the search model in use."""
    after: float
    """The measure with the one that was learned."""


class LearningStep(Document):
    """A change of the retriever in force, or what was learned and compared without one."""

    time: str
    """When, ISO 8601."""
    action: Literal["promoted", "kept", "rolled back", "changed"]
    """Whether a learned one took over, everything stayed, an earlier one came back, or somebody changed over."""
    origin: Literal["clicks", "captions", "switch", "choice"]
    """What began it: learning from clicks or captions, another search model, or the choice of a stored one."""
    gate: dict[str, Any]
    """All that was measured: what the gate asks for, and what was found.

    Where clicks were learned from, `repeated` (queries asked before), `new` and `held_out` (kept back, answered by
    similar ones) have `old`, `new`, `relative`, `low` (at worst, 95 % sure), `p_value`, `share` of the traffic,
    `n_searches`, `n_queries` and `n_people` (null where the log tells no visitors apart); `visual_consistency`
    says whether what is clicked looks alike.
    """
    before: str
    """The search model in use before."""
    before_fingerprint: Fingerprint
    after: str
    """The search model in use afterwards."""
    after_fingerprint: Fingerprint
    reason: str
    compared_with: str
    """The search model that the learned one had to beat: with captions the one beneath it, if that was learned."""
    measure: str
    """What was compared, such as MAP; empty where nothing was."""
    old: float | None
    """Its mean over later searches, or over pictures kept back, with `compared_with`."""
    new: float | None
    """Its mean with the one that was learned."""
    p_value: float | None
    """How likely so large a difference is if neither is better: a randomisation test, two-sided."""
    alpha: float | None
    """How small that had to be: for clicks, what was left of the error budget."""
    n_queries: int
    """How many different queries, or pictures with captions, were learned from."""
    n_held_out: int
    """How many of them judged what was learned."""
    n_clicks: float
    answered: float | None
    """The share of later searches for queries that had been asked before."""
    parts: dict[str, float]
    """The weight of each part of what was learned; `present` is `compared_with`."""
    gained: list[QueryChange]
    """The queries that gained most."""
    lost: list[QueryChange]
    """The queries that lost most."""


class LearningDocument(Document):
    """The history of retrievers, and the way back."""

    steps: list[LearningStep]
    """The latest first."""
    rolls_back_to: str | None
    """The search model that going back would use again; null where the active one replaced none that is stored."""
