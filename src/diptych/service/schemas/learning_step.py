"""One step of learning from clicks."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.document import Document
from diptych.service.schemas.query_change import QueryChange


class LearningStep(Document):
    """What was learned and compared when, and what became of it."""

    time: str
    """When, ISO 8601."""
    action: Literal["promoted", "kept", "rolled back"]
    """Whether the learned retriever took over, everything stayed as it was, or an earlier one came back."""
    before: str
    """The retriever in force before."""
    before_fingerprint: str
    """Which state of it."""
    after: str
    """The retriever in force afterwards."""
    after_fingerprint: str
    """Which state of it."""
    reason: str
    """Why."""
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
    """How many clicks there were."""
    answered: float | None
    """The share of queries kept back for which the log knew something."""
    parts: dict[str, float]
    """The weight of each part of what was learned; `present` is `compared_with`."""
    gained: list[QueryChange]
    """The queries that gained most."""
    lost: list[QueryChange]
    """The queries that lost most."""
